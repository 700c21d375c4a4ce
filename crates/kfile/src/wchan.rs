//! `/proc/PID/wchan`: the kernel function that a task sleeps in.
//!
//! The only file here without a newline, so a cut name cannot be seen to be one.

use crate::ParseError;

/// Parses `wchan`; `None` where the task runs, or its stack may not be looked at (`0`).
///
/// # Errors
/// Not the name of a function.
pub fn parse(bytes: &[u8]) -> Result<Option<&str>, ParseError> {
    let name = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    match std::str::from_utf8(name) {
        Ok("" | "0") => Ok(None),
        Ok(name) if name.bytes().all(|b| b.is_ascii_graphic()) => Ok(Some(name)),
        _ => Err(ParseError { line_no: 1, what: "the name of a kernel function, or 0" }),
    }
}

/// The file as the kernel prints it.
#[must_use]
pub fn render(function: Option<&str>) -> String {
    function.unwrap_or("0").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_nothing_are_no_function() {
        assert_eq!(parse(b"rq_qos_wait"), Ok(Some("rq_qos_wait")));
        assert_eq!(parse(b"0"), Ok(None));
        assert_eq!(parse(b""), Ok(None));
        assert_eq!(parse(render(None).as_bytes()), Ok(None));
        assert!(parse(b"two words").is_err());
    }
}
