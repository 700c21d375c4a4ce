//! No path of one developer's machine in what others check out.

use crate::workspace::SourceFile;

/// Top-level directories that only one machine has.
const DIRS: [&str; 3] = ["home", "root", "work"];

/// Whose home is an example: nobody works here under these names. Digits may follow.
const EXAMPLES: [&str; 4] = ["alice", "bob", "name", "user"];

/// Captures are a machine's own words and are kept as they are; a lock file names no paths.
const LEFT_OUT: [&str; 2] = ["fixtures/", "Cargo.lock"];

/// Every line with such a path.
pub(super) fn problems(files: &[SourceFile]) -> Vec<String> {
    let ours = files.iter().filter(|file| !LEFT_OUT.iter().any(|out| file.path.starts_with(out)));
    ours.flat_map(of_file).collect()
}

fn of_file(file: &SourceFile) -> Vec<String> {
    let lines = (1..).zip(file.text.lines());
    let found = lines.filter_map(|(line_no, line)| {
        let dir = DIRS.iter().find(|dir| has_absolute(line, dir))?;
        Some(format!("{}:{line_no}: /{dir}/ is a path of one machine", file.path))
    });
    found.collect()
}

/// Whether the line holds an absolute path into this directory: `x/home/` and `$D/home/` are relative to something.
fn has_absolute(line: &str, dir: &str) -> bool {
    let dir = format!("/{dir}/");
    line.match_indices(&dir).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        let absolute = !before.is_some_and(|c| c.is_alphanumeric() || "._-}~*".contains(c));
        let below = line.get(at + dir.len()..).unwrap_or_default();
        let name = below.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        absolute && !EXAMPLES.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        problems(&[SourceFile { path: path.into(), text: text.into() }]).len()
    }

    #[test]
    fn a_path_of_one_machine_is_refused() {
        for dir in DIRS {
            for text in
                [format!("/{dir}/x"), format!("see \"/{dir}/x\""), format!("file:///{dir}/x"), format!("A=/{dir}/x")]
            {
                assert_eq!(count("docs/x.md", &text), 1, "{text}");
            }
        }
    }

    #[test]
    fn a_part_of_a_path_is_not_one() {
        for text in
            ["/sys/block/sda", "tree/root/proc", "$DIR/work/x", "${DIR}/work/x", "../home/x", "homework", "/workload/"]
        {
            assert_eq!(count("docs/x.md", text), 0, "{text}");
        }
    }

    #[test]
    fn an_example_may_have_a_home() {
        let home = |name: &str| count("docs/x.md", &format!("cd /{}/{name}/db", DIRS[0]));
        assert_eq!([home("alice"), home("name3"), home("alicia"), home("")], [0, 0, 1, 1]);
    }

    #[test]
    fn captures_keep_their_words() {
        let text = format!("/{}/x", DIRS[0]);
        assert_eq!((count("fixtures/captures/x/mountinfo", &text), count("crates/host/src/x.rs", &text)), (0, 1));
    }
}
