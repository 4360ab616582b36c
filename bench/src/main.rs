//! What can be measured without a rival: the plan of an epoch, and the index. Each prints one line of JSON.
#![allow(clippy::print_stdout, reason = "its output is what it measured")]

mod index_size;
mod memory;
mod plan;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("plan") => println!("{}", plan::measure()),
        Some("index") => println!("{}", index_size::measure()),
        _ => {
            eprintln!("usage: bench plan|index");
            std::process::exit(2);
        }
    }
}
