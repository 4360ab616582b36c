//! The command `farhaul`.

fn main() -> std::process::ExitCode {
    farhaul::cli::run(std::env::args_os())
}
