//! `cargo xtask tidy`: the rules of this repository that the compiler does not know.
//!
//! Each check is a pure function from the repository's files and packages to a list of problems, so that its tests can
//! show it an input that it must refuse. The files are parsed, not searched: a word in a comment or in a string is no
//! problem, and one behind a renamed import is.

mod dependencies;
mod edges;
mod paths;
mod purity;
mod rules;
mod shape;

use anyhow::{Result, ensure};

use crate::workspace::{SourceFile, Workspace};

/// A Rust file, parsed.
struct RustFile {
    path: String,
    text: String,
    syntax: syn::File,
}

impl RustFile {
    fn parse(file: &SourceFile) -> Result<Self, String> {
        let syntax = syn::parse_file(&file.text).map_err(|error| {
            let at = error.span().start();
            format!("{}:{}: {error}", file.path, at.line)
        })?;
        Ok(Self { path: file.path.clone(), text: file.text.clone(), syntax })
    }
}

/// Runs every check and prints what it found.
pub(crate) fn run() -> Result<()> {
    let workspace = Workspace::load()?;
    let files = workspace.files()?;
    let problems = problems(&workspace, &files);
    for problem in &problems {
        println!("{problem}");
    }
    ensure!(problems.is_empty(), "tidy: {} problems", problems.len());
    println!("tidy: {} files and {} packages are in order", files.len(), workspace.packages().len());
    Ok(())
}

fn problems(workspace: &Workspace, files: &[SourceFile]) -> Vec<String> {
    let packages = workspace.packages();
    let everyone: Vec<_> = packages.iter().cloned().chain(workspace.fuzz()).collect();
    let parsed = files.iter().filter(|file| file.path.ends_with(".rs")).map(RustFile::parse);
    let (sources, unparsed): (Vec<_>, Vec<_>) = parsed.partition(Result::is_ok);
    let sources: Vec<RustFile> = sources.into_iter().flatten().collect();
    let mut problems: Vec<String> = unparsed.into_iter().filter_map(Result::err).collect();
    problems.extend(edges::problems(&packages));
    problems.extend(dependencies::problems(&everyone, files));
    problems.extend(purity::problems(&sources));
    problems.extend(shape::problems(&sources));
    problems.extend(rules::problems(&sources));
    problems.extend(paths::problems(files));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that a check is shown.
    pub(super) fn source(path: &str, text: &str) -> RustFile {
        RustFile::parse(&SourceFile { path: path.into(), text: text.into() }).unwrap()
    }

    #[test]
    fn a_file_that_does_not_parse_is_named_with_its_line() {
        let file = SourceFile { path: "a.rs".into(), text: "//! Head.\nfn (\n".into() };
        assert!(RustFile::parse(&file).is_err_and(|error| error.starts_with("a.rs:2: ")));
    }
}
