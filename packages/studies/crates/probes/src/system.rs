//! Checks the results of system calls, and turns errors into problems to report.

use std::io;

use equipoise_reporting::problem::Problem;

/// Errors with which the machine forbids the operation or reports a missing resource.
const UNAVAILABLE_ERRORS: [i32; 16] = [
    libc::EPERM,
    libc::EACCES,
    libc::ENOSYS,
    libc::EOPNOTSUPP,
    libc::EAFNOSUPPORT,
    libc::EROFS,
    libc::EAGAIN,
    libc::EMFILE,
    libc::ENFILE,
    libc::ENOMEM,
    libc::ENOBUFS,
    libc::ENOSPC,
    libc::ENETDOWN,
    libc::ENETUNREACH,
    libc::EADDRNOTAVAIL,
    libc::EDQUOT,
];

/// Returns the problem of a call that has just failed, from the error number of this thread.
#[cold]
pub fn last_problem(call: &str) -> Problem {
    problem_of(call)(io::Error::last_os_error())
}

/// Returns a function that turns an error of a call into a problem. If the machine causes the error,
/// the problem is `unavailable`.
pub fn problem_of(call: &str) -> impl Fn(io::Error) -> Problem + Copy + '_ {
    move |error| {
        let text = format!("{call}: {error}");
        match error.raw_os_error() {
            Some(code) if UNAVAILABLE_ERRORS.contains(&code) => Problem::unavailable(text),
            _ => Problem::failure(text),
        }
    }
}

#[inline]
pub fn check_error_number(call: &str, code: libc::c_int) -> Result<(), Problem> {
    match code {
        0 => Ok(()),
        _ => Err(problem_of(call)(io::Error::from_raw_os_error(code))),
    }
}

/// Checks the result of a call, which is negative after an error; returns any other result.
#[inline]
pub fn check_negative<Number: PartialOrd + Default>(
    call: &str,
    result: Number,
) -> Result<Number, Problem> {
    if result < Number::default() {
        return Err(last_problem(call));
    }
    Ok(result)
}

#[cold]
pub fn wrong_result(
    call: &str,
    result: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> Problem {
    Problem::failure(format!("{call} gave {result} instead of {expected}"))
}

/// Checks that a call returned the expected result. After a negative result, `errno` has the error.
#[inline]
pub fn check_result<Number>(call: &str, result: Number, expected: Number) -> Result<(), Problem>
where
    Number: PartialOrd + Default + std::fmt::Display,
{
    if result == expected {
        return Ok(());
    }
    Err(match check_negative(call, result) {
        Err(problem) => problem,
        Ok(result) => wrong_result(call, result, expected),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_machine_are_unavailable_and_other_errors_are_failures() {
        for (code, unavailable) in [
            (libc::EPERM, true),
            (libc::ENOSYS, true),
            (libc::EACCES, true),
            (libc::ENOMEM, true),
            (libc::EBADF, false),
            (libc::EINVAL, false),
        ] {
            let problem = problem_of("call")(io::Error::from_raw_os_error(code));
            assert_eq!(problem.is_unavailable(), unavailable, "{problem}");
            assert!(problem.to_string().starts_with("call: "));
        }
    }

    #[test]
    fn a_wrong_result_is_named_in_the_problem() {
        let problem = check_result("read", 0, 1).expect_err("0 is not 1");
        assert_eq!(problem.to_string(), "read gave 0 instead of 1");
        assert!(check_result("read", 1, 1).is_ok());
    }
}
