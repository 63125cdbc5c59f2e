//! Finds the command of a program by its name, and ends the program with an exit status.

use std::io::Write;
use std::process::ExitCode;

use crate::metrics::escaped;
use crate::problem::Problem;

/// Finds a command by its name; `kind` is the word for a command in the message.
///
/// # Errors
/// There is no name, or no command has this name; the message lists all names.
pub fn find_command<'a, Command>(
    kind: &str,
    commands: &'a [Command],
    name_of: impl Fn(&Command) -> &'static str,
    name: Option<&str>,
) -> Result<&'a Command, Problem> {
    let command = commands
        .iter()
        .find(|command| Some(name_of(command)) == name);
    command.ok_or_else(|| {
        let names: Vec<_> = commands.iter().map(name_of).collect();
        let problem = name.map_or("missing".to_owned(), |name| format!("unknown: `{name}`"));
        let names = names.join(", ");
        Problem::usage(format!("{kind} {problem}; name one of: {names}"))
    })
}

/// Writes a text to standard output, or a problem to standard error; returns the exit status.
///
/// A problem of the machine is written as JSON, to distinguish it from a failure of the work.
#[must_use]
pub fn finish(program: &str, result: Result<String, Problem>) -> ExitCode {
    let (written, status) = match result {
        Ok(text) => (std::io::stdout().write_all(text.as_bytes()), 0),
        Err(problem) => {
            let line = if problem.is_unavailable() {
                format!(
                    "{{\"unavailable\": \"{}\"}}\n",
                    escaped(&problem.to_string())
                )
            } else {
                format!("{program}: {problem}\n")
            };
            // If standard error is closed, too, the problem cannot be reported.
            let _ = std::io::stderr().write_all(line.as_bytes());
            (Ok(()), problem.exit_status())
        }
    };
    written.map_or(ExitCode::FAILURE, |()| ExitCode::from(status))
}
