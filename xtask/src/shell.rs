//! Running other programs: one line printed for each, output in order, no terminal needed.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::process::{Command, Stdio};

/// What every step returns; a message for the person at the terminal is all that is needed.
pub(crate) type Result<T> = std::result::Result<T, String>;

/// A program with its arguments and environment, ready to run from the workspace root.
#[derive(Debug)]
pub(crate) struct Run {
    command: Command,
}

impl Run {
    /// A run of `program` from the workspace root, without standard input: nothing may ask.
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command
            .stdin(Stdio::null())
            .current_dir(crate::places::root());
        // Cargo tells a program that it runs which package that is. Told to the next cargo, it makes build scripts that
        // watch these variables run again.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["CARGO_PKG_", "CARGO_MANIFEST_"]
                .iter()
                .any(|start| text.starts_with(start))
            {
                command.env_remove(&name);
            }
        }
        Self { command }
    }

    /// A run of the cargo that runs this.
    pub(crate) fn cargo() -> Self {
        Self::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds every word of `line`, split at spaces.
    pub(crate) fn words(mut self, line: &str) -> Self {
        self.command.args(line.split_whitespace());
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn current_dir(mut self, folder: impl AsRef<std::path::Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Prints the command and runs it; both of its outputs go to standard output, so that a log
    /// keeps them in order.
    pub(crate) fn run(mut self) -> Result<()> {
        println!("$ {self}");
        let status = self.command.stderr(io::stdout()).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("`{self}` failed ({status})")),
            Err(error) => Err(format!("`{self}` could not be started: {error}")),
        }
    }

    /// Runs it in silence and returns what it printed; on failure the error holds its stderr.
    pub(crate) fn read(mut self) -> Result<String> {
        let output = self
            .command
            .output()
            .map_err(|error| format!("`{self}` could not be started: {error}"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(format!(
            "`{self}` failed ({}):\n{}",
            output.status,
            stderr.trim_end()
        ))
    }

    /// Whether it can be run at all and exits with 0.
    pub(crate) fn succeeds(mut self) -> bool {
        self.command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }
}

impl fmt::Display for Run {
    /// The command as a person would type it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = std::path::Path::new(self.command.get_program());
        let name = program.file_name().unwrap_or(program.as_os_str());
        write!(formatter, "{}", name.to_string_lossy())?;
        for argument in self.command.get_args() {
            let argument = argument.to_string_lossy();
            if argument.is_empty() || argument.contains([' ', '\n', '"', '\'']) {
                write!(formatter, " '{argument}'")?;
            } else {
                write!(formatter, " {argument}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_an_error_that_names_it() {
        let error = Run::new("sh")
            .arg("-c")
            .arg("echo why >&2; exit 7")
            .read()
            .unwrap_err();
        assert!(error.contains("sh -c 'echo why >&2; exit 7'"), "{error}");
        assert!(error.contains("why"), "{error}");
    }

    #[test]
    fn a_missing_program_is_an_error_and_no_success() {
        assert!(!Run::new("no-such-program-of-farhaul").succeeds());
        assert!(
            Run::new("no-such-program-of-farhaul")
                .read()
                .unwrap_err()
                .contains("could not be started")
        );
    }

    #[test]
    fn a_program_does_not_hear_which_package_started_it() {
        assert!(
            std::env::var_os("CARGO_PKG_NAME").is_some(),
            "cargo tells its tests"
        );
        assert_eq!(
            Run::new("sh")
                .args(["-c", "echo $CARGO_PKG_NAME"])
                .read()
                .unwrap()
                .trim(),
            ""
        );
    }

    #[test]
    fn a_program_has_no_standard_input() {
        assert_eq!(Run::new("cat").read().unwrap(), "");
    }
}
