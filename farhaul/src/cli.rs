//! The command `farhaul`: arguments in; progress on stderr, the answer on stdout, and an exit code out.
//!
//! With `--json` the answer is one object (a line a sample for `inspect`), on failure too. Exit codes: 0 done; 1 a check or a
//! sample failed; 2 wrong usage; 3 store, source, disk or network; 130 after Ctrl-C.

use std::{
    ffi::OsString, io::Read, os::unix::net::UnixStream, process::ExitCode, thread, time::Duration,
};

use clap::Parser;
use loader_core::{Error, ErrorKind, Result};

use self::{
    arguments::{Arguments, Command},
    output::Output,
};
use crate::{runtime::no_thread, task::Cancel};

mod answer;
mod arguments;
mod bars;
mod commands;
mod demo;
mod failure;
mod format;
mod opening;
mod output;
mod usage;

/// Exit code after Ctrl-C.
const INTERRUPTED: u8 = 130;
/// How long a task may take to stop after it: most take less than a tenth.
const GRACE: Duration = Duration::from_secs(4);

/// Runs one command with these arguments, the program's name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let parsed = match Arguments::try_parse_from(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => return usage::answer(&error, &arguments),
    };
    let mut output = Output::new(parsed.json);
    let code = match listen_for_interrupts() {
        Ok(cancel) => dispatch(parsed.command, &mut output, &cancel),
        Err(error) => output.failed(&error),
    };
    ExitCode::from(output.close(code))
}

fn dispatch(command: Command, output: &mut Output, cancel: &Cancel) -> u8 {
    match command {
        Command::Ingest(arguments) => commands::ingest(&arguments, output, cancel),
        Command::Info(arguments) => commands::info(&arguments, output, cancel),
        Command::Inspect(arguments) => commands::inspect(arguments, output, cancel),
        Command::Verify(arguments) => commands::verify(&arguments, output, cancel),
        #[cfg(feature = "folder")]
        Command::Export(arguments) => commands::export(&arguments, output, cancel),
        Command::Bench(arguments) => commands::bench(&arguments, output, cancel),
        Command::Demo(arguments) => demo::demo(&arguments, output, cancel),
    }
}

/// The first Ctrl-C asks the task to stop, the second ends the process at once. So does time: a task that waits for a disk or
/// for the reader of stdout sees no wish, and everything that it writes survives a crash.
fn listen_for_interrupts() -> Result<Cancel> {
    use signal_hook::{
        consts::SIGINT,
        flag,
        low_level::{exit, pipe},
    };

    let cancel = Cancel::default();
    let listen = || {
        flag::register_conditional_shutdown(SIGINT, i32::from(INTERRUPTED), cancel.flag())?;
        flag::register(SIGINT, cancel.flag())?;
        let (mut wake, signal) = UnixStream::pair()?;
        pipe::register(SIGINT, signal)?;
        let last_resort = move || {
            // The other end is never closed, so this waits for a byte and nothing else.
            if wake.read_exact(&mut [0]).is_ok() {
                thread::sleep(GRACE);
                exit(INTERRUPTED.into());
            }
        };
        Ok::<_, std::io::Error>(last_resort)
    };
    let last_resort =
        listen().map_err(|error| Error::io("Ctrl-C cannot be listened for", error))?;
    thread::Builder::new()
        .name("farhaul-interrupt".into())
        .spawn(last_resort)
        .map_err(no_thread)?;
    Ok(cancel)
}

/// The exit code that an error stands for.
fn exit_code(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::Usage => 2,
        ErrorKind::Cancelled => INTERRUPTED,
        ErrorKind::TooManyErrors => 1,
        // A target that may not be written to fails for the disk's sake, whichever sample was the first.
        ErrorKind::PermissionDenied if error.operation() == "export" => 3,
        _ if error.is_of_one_sample() && error.path().is_some() => 1,
        _ => 3,
    }
}
