//! The shape of a Rust file: it opens by saying what it is, and one can read it in one sitting.

use super::RustFile;
use super::purity::is_test;

/// Lines before the tests.
const LINES_MAX: usize = 600;

/// Every file that is too long or does not say what it is.
pub(super) fn problems(sources: &[RustFile]) -> Vec<String> {
    sources.iter().flat_map(|file| [too_long(file), no_head(file)]).flatten().collect()
}

fn no_head(file: &RustFile) -> Option<String> {
    // A program's first line may be `#!`; none of ours is.
    let says = file.text.lines().next().and_then(|line| line.strip_prefix("//!")).is_some_and(|rest| rest.len() > 1);
    (!says).then(|| format!("{}:1: does not open with `//!`: what it is, and its place", file.path))
}

fn too_long(file: &RustFile) -> Option<String> {
    // A file below `tests/` is tests from its first line on.
    let all_tests = file.path.split('/').any(|part| part == "tests");
    let lines = lines_before_tests(file);
    let problem = || format!("{}: {lines} lines before its tests, {LINES_MAX} are the most", file.path);
    (!all_tests && lines > LINES_MAX).then(problem)
}

fn lines_before_tests(file: &RustFile) -> usize {
    let modules = file.syntax.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_some() => module.attrs.iter().find(|attr| is_test(attr)),
        _ => None,
    });
    let starts = modules.map(|attr| attr.pound_token.span.start().line.saturating_sub(1));
    starts.min().unwrap_or_else(|| file.text.lines().count())
}

#[cfg(test)]
mod tests {
    use super::super::tests::source;
    use super::*;

    fn lines(path: &str, code: usize, tests: usize) -> RustFile {
        let code = "const _: u8 = 0;\n".repeat(code - 1);
        source(path, &format!("//! Head.\n{code}#[cfg(test)]\nmod tests {{\n{}}}\n", "// x\n".repeat(tests)))
    }

    #[test]
    fn a_long_file_is_refused_and_its_tests_do_not_count() {
        assert_eq!(problems(&[lines("a.rs", 600, 900)]), Vec::<String>::new());
        assert_eq!(problems(&[lines("a.rs", 601, 1)]), ["a.rs: 601 lines before its tests, 600 are the most"]);
        let untested = source("a.rs", &format!("//! Head.\n{}", "// x\n".repeat(600)));
        assert_eq!(problems(&[untested]).len(), 1);
    }

    #[test]
    fn a_file_of_tests_may_be_long() {
        assert_eq!(problems(&[lines("crates/cli/tests/cmd.rs", 700, 1)]), Vec::<String>::new());
    }

    #[test]
    fn a_file_without_a_head_is_refused() {
        for text in
            ["fn f() {}", "// A comment.\nfn f() {}", "\n//! Late.\n", "//!\nfn f() {}", "/// Of the item.\nfn f() {}"]
        {
            assert_eq!(problems(&[source("a.rs", text)]).len(), 1, "{text:?}");
        }
        assert_eq!(problems(&[source("a.rs", "//! What it is.\n#![no_main]\n")]), Vec::<String>::new());
    }
}
