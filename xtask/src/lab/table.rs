//! What is said of runs: a line each, and a table of all.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::verdict::{Verdict, files};

/// A scenario that was run.
pub(crate) struct Run {
    pub(crate) scenario: String,
    pub(crate) kernel: String,
    pub(crate) verdict: Verdict,
    pub(crate) took: Duration,
    /// What the guest left, as tar.
    pub(crate) archive: Option<Vec<u8>>,
}

impl Run {
    /// The verdict in a line.
    pub(crate) fn line(&self) -> String {
        let (word, seconds) = (self.verdict.word(), self.took.as_secs_f64());
        format!("{word:8} {:28} {:8} {seconds:5.1} s", self.scenario, self.kernel)
    }

    /// Writes what the guest left below a directory.
    pub(crate) fn keep(&self, dir: &Path, number: usize) -> Result<()> {
        let dir = dir.join(format!("{}-{}-{number}", self.scenario, self.kernel));
        for (name, bytes) in self.archive.as_deref().map(files).transpose()?.unwrap_or_default() {
            let path = dir.join(&name);
            let parent = path.parent().unwrap_or(&dir);
            std::fs::create_dir_all(parent).with_context(|| format!("{}", parent.display()))?;
            if !name.is_empty() && !name.ends_with('/') {
                std::fs::write(&path, bytes).with_context(|| format!("{}", path.display()))?;
            }
        }
        Ok(())
    }
}

/// All runs as a Markdown table: scenarios down, kernels across, a word for each run.
pub(crate) fn of(runs: &[Run]) -> String {
    let mut kernels: Vec<&str> = Vec::new();
    let mut rows: BTreeMap<&str, BTreeMap<&str, Vec<String>>> = BTreeMap::new();
    for run in runs {
        if !kernels.contains(&run.kernel.as_str()) {
            kernels.push(&run.kernel);
        }
        let cell = rows.entry(&run.scenario).or_default().entry(&run.kernel).or_default();
        cell.push(format!("{} {:.0} s", run.verdict.word(), run.took.as_secs_f64()));
    }
    let mut table = format!("| scenario | {} |\n|---|{}\n", kernels.join(" | "), "---|".repeat(kernels.len()));
    for (scenario, cells) in rows {
        let cells = kernels.iter().map(|kernel| cells.get(kernel).map(|words| words.join(", ")).unwrap_or_default());
        let _ = writeln!(table, "| {scenario} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    table
}

/// How many runs ended in which way.
pub(crate) fn counts(runs: &[Run]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for run in runs {
        *counts.entry(run.verdict.word()).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    format!("{} runs: {}", runs.len(), counts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_its_word_in_the_table_and_in_the_counts() {
        let run = |kernel: &str, verdict| Run {
            scenario: "idle".into(),
            kernel: kernel.into(),
            verdict,
            took: Duration::from_millis(20_400),
            archive: None,
        };
        let runs = [
            run("stock", Verdict::Right(Vec::new())),
            run("stock", Verdict::Void(Vec::new())),
            run("new", Verdict::Right(Vec::new())),
        ];
        assert_eq!(
            of(&runs),
            "| scenario | stock | new |\n|---|---|---|\n| idle | right 20 s, VOID 20 s | right 20 s |\n"
        );
        assert_eq!(counts(&runs), "3 runs: 1 VOID, 2 right");
    }
}
