//! `docs/dependencies.md` and the manifests say the same: every crate from outside is written down with its reason, and
//! nothing is written down that nobody uses.

use std::collections::{BTreeMap, BTreeSet};

use super::edges::order;
use crate::workspace::{Package, SourceFile, Why};

const ROOT: &str = "Cargo.toml";

const DOC: &str = "docs/dependencies.md";

/// The head of the table.
const HEAD: [&str; 4] = ["crate", "used by", "what for", "instead of"];

/// Every difference between the table and the manifests.
pub(super) fn problems(packages: &[Package], files: &[SourceFile]) -> Vec<String> {
    let Some(doc) = files.iter().find(|file| file.path == DOC) else { return vec![format!("{DOC}: is not there")] };
    let mut rows = BTreeMap::new();
    let mut problems = Vec::new();
    for (line_no, cells) in table(&doc.text) {
        match <[String; 4]>::try_from(cells) {
            Ok([name, used_by, what_for, instead_of]) if !what_for.is_empty() && !instead_of.is_empty() => {
                if rows.insert(name.clone(), (line_no, used_by)).is_some() {
                    problems.push(format!("{DOC}:{line_no}: {name} has two lines"));
                }
            }
            _ => problems.push(format!("{DOC}:{line_no}: a cell is empty or missing: {}", HEAD.join(", "))),
        }
    }
    let used = used(packages);
    problems.extend(used.iter().filter_map(|(name, used_by)| match rows.get(*name) {
        None => Some(format!("{DOC}: {name} has no line; it is used by {used_by}")),
        Some((_, told)) if told == used_by => None,
        Some((line_no, told)) => Some(format!("{DOC}:{line_no}: {name} is used by {used_by}, not by {told}")),
    }));
    let stale = rows.iter().filter(|(name, _)| !used.contains_key(name.as_str()));
    problems.extend(stale.map(|(name, (line_no, _))| format!("{DOC}:{line_no}: {name} is used by nobody")));
    problems.extend(
        offered(files)
            .filter(|(_, name)| !is_used(packages, name))
            .map(|(line_no, name)| format!("{ROOT}:{line_no}: {name} is offered to all crates and used by none")),
    );
    problems
}

/// The names in the root's `[workspace.dependencies]`, which cargo itself never misses a user of.
fn offered(files: &[SourceFile]) -> impl Iterator<Item = (usize, &str)> {
    let root = files.iter().find(|file| file.path == ROOT).map_or("", |file| file.text.as_str());
    let lines = (1..).zip(root.lines()).skip_while(|(_, line)| *line != "[workspace.dependencies]").skip(1);
    let table = lines.take_while(|(_, line)| !line.starts_with('['));
    table
        .filter_map(|(line_no, line)| Some((line_no, line.split_once('=')?.0.trim())))
        .filter(|(_, name)| !name.starts_with('#'))
}

fn is_used(packages: &[Package], name: &str) -> bool {
    packages.iter().any(|package| package.needs.iter().any(|need| need.name == name))
}

/// The rows of the table, each with the number of its line: what is in backquotes loses them.
fn table(text: &str) -> Vec<(usize, Vec<String>)> {
    let cells = |line: &str| -> Option<Vec<String>> {
        let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        Some(inner.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect())
    };
    let lines = (1..).zip(text.lines()).map(|(line_no, line)| (line_no, cells(line)));
    lines
        .skip_while(|(_, row)| row.as_deref().is_none_or(|row| row != HEAD))
        .skip(2)
        .map_while(|(line_no, row)| Some((line_no, row?)))
        .collect()
}

/// Who uses each crate from outside: `kfile, host, cli (tests)`, in the order of the pipeline.
fn used(packages: &[Package]) -> BTreeMap<&str, String> {
    let mut users: BTreeMap<&str, BTreeSet<(usize, &str, Why)>> = BTreeMap::new();
    for package in packages {
        for need in package.needs.iter().filter(|need| !need.own) {
            let folder = package.folder.as_str();
            users.entry(&need.name).or_default().insert((order(folder), folder, need.why));
        }
    }
    let told = |users: BTreeSet<(usize, &str, Why)>| {
        let mut words: Vec<String> = Vec::new();
        let mut last = None;
        for (_, folder, why) in users {
            // Who uses it in its code needs no word on its tests.
            if last.replace(folder) == Some(folder) {
                continue;
            }
            words.push(match why {
                Why::Code => folder.to_owned(),
                Why::Build => format!("{folder} (build)"),
                Why::Tests => format!("{folder} (tests)"),
            });
        }
        words.join(", ")
    };
    users.into_iter().map(|(name, users)| (name, told(users))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Need;

    fn package(folder: &str, needs: &[(&str, Why)]) -> Package {
        let need = |&(name, why): &(&str, Why)| Need { name: name.into(), why, own: name.starts_with("quell") };
        Package {
            name: folder.into(),
            folder: folder.into(),
            needs: needs.iter().map(need).collect(),
            programs: Vec::new(),
        }
    }

    fn found(rows: &str) -> Vec<String> {
        let packages = [
            package("fuzz", &[("serde", Why::Code)]),
            package(
                "host",
                &[("serde", Why::Code), ("serde", Why::Tests), ("tempfile", Why::Tests), ("quell-units", Why::Code)],
            ),
            package("units", &[("serde", Why::Code)]),
        ];
        let text = format!(
            "# Title\n\n| crate | used by | what for | instead of |\n|---|---|---|---|\n{rows}\nMore | text.\n"
        );
        problems(&packages, &[SourceFile { path: DOC.into(), text }])
    }

    const SERDE: &str = "| `serde` | units, host, fuzz | recordings | by hand |\n";
    const TEMPFILE: &str = "| `tempfile` | host (tests) | trees | by hand |\n";

    #[test]
    fn a_whole_table_is_fine() {
        assert_eq!(found(&[SERDE, TEMPFILE].concat()), Vec::<String>::new());
    }

    #[test]
    fn a_missing_and_a_stale_line_are_refused() {
        assert_eq!(found(SERDE), ["docs/dependencies.md: tempfile has no line; it is used by host (tests)"]);
        let stale = "| `nix` | host | calls | libc |\n";
        assert_eq!(found(&[SERDE, TEMPFILE, stale].concat()), ["docs/dependencies.md:7: nix is used by nobody"]);
        assert_eq!(found(&[SERDE, TEMPFILE, TEMPFILE].concat()).len(), 1, "two lines");
        assert_eq!(found("").len(), 2);
    }

    #[test]
    fn a_line_that_names_the_wrong_users_or_no_reason_is_refused() {
        assert_eq!(found(&[SERDE, &TEMPFILE.replace("host (tests)", "host")].concat()).len(), 1);
        assert_eq!(found(&[SERDE, TEMPFILE, "| `serde_json` | host |  | x |\n"].concat()).len(), 1);
    }

    #[test]
    fn what_the_root_offers_and_nobody_uses_is_refused() {
        let text = "[workspace]\n[workspace.dependencies]\n# Why = what.\nserde = \"1\"\nmemchr = { version = \"2\" }\n\n[lints]\nx = 1\n";
        let root = SourceFile { path: ROOT.into(), text: text.into() };
        let doc = SourceFile {
            path: DOC.into(),
            text: format!("| crate | used by | what for | instead of |\n|---|\n{SERDE}"),
        };
        let packages = ["fuzz", "host", "units"].map(|folder| package(folder, &[("serde", Why::Code)]));
        assert_eq!(
            problems(&packages, &[root, doc]),
            ["Cargo.toml:5: memchr is offered to all crates and used by none"]
        );
    }

    #[test]
    fn no_file_is_a_problem() {
        assert_eq!(problems(&[], &[]), ["docs/dependencies.md: is not there"]);
    }
}
