//! The arrows between the crates, which only point left, and what the crates without I/O may use from outside.
//!
//! Crates that do not exist yet have their place already, so that the first line of a new one is checked like all others.

use crate::workspace::{Package, Why};

/// A crate's place.
struct Place {
    package: &'static str,
    folder: &'static str,
    /// The folders of the crates that it may use.
    may_use: &'static [&'static str],
    /// Whether its tests may use any crate.
    tests_use_all: bool,
    /// The crates from outside that it may use, where it does no I/O: what it uses could do it in its place.
    from_outside: Option<&'static [&'static str]>,
}

const fn pure(package: &'static str, folder: &'static str, may_use: &'static [&'static str]) -> Place {
    Place { package, folder, may_use, tests_use_all: false, from_outside: Some(&["serde", "thiserror"]) }
}

const fn place(package: &'static str, folder: &'static str, may_use: &'static [&'static str]) -> Place {
    Place { package, folder, may_use, tests_use_all: false, from_outside: None }
}

/// The pipeline, from left to right.
static PLACES: [Place; 10] = [
    pure("quell-units", "units", &[]),
    pure("quell-kfile", "kfile", &["units"]),
    Place { from_outside: Some(&["serde", "serde_json", "thiserror"]), ..pure("quell-paste", "paste", &["units"]) },
    pure("quell-engine", "engine", &["units", "kfile", "paste"]),
    place("quell-host", "host", &["units", "kfile", "engine"]),
    place("quell-trace", "trace", &["units", "kfile", "engine"]),
    place("quell-load", "load", &["units", "kfile", "engine", "host"]),
    place("quell-agent", "agent", &["units", "kfile", "engine", "host", "trace"]),
    Place {
        tests_use_all: true,
        ..place("quell", "cli", &["units", "kfile", "paste", "engine", "host", "trace", "load", "agent"])
    },
    place("xtask", "xtask", &["units", "kfile", "paste", "engine", "host", "trace", "load", "agent", "cli"]),
];

/// The folders of the crates without I/O.
pub(super) fn pure_folders() -> impl Iterator<Item = &'static str> {
    PLACES.iter().filter(|place| place.from_outside.is_some()).map(|place| place.folder)
}

/// The place of a folder in the pipeline, from the left.
pub(super) fn order(folder: &str) -> usize {
    PLACES.iter().position(|place| place.folder == folder).unwrap_or(PLACES.len())
}

/// Every arrow that is not in the table, and every crate.
pub(super) fn problems(packages: &[Package]) -> Vec<String> {
    packages.iter().flat_map(of_package).collect()
}

fn of_package(package: &Package) -> Vec<String> {
    let name = &package.name;
    let Some(place) = find(name).filter(|place| place.folder == package.folder) else {
        return vec![format!("{name} in {}/: no such place in the pipeline (xtask/src/tidy/edges.rs)", package.folder)];
    };
    let wrong = package.needs.iter().filter(|need| !(place.tests_use_all && need.why == Why::Tests));
    wrong
        .filter_map(|need| match find(&need.name) {
            Some(other) if place.may_use.contains(&other.folder) => None,
            Some(_) => Some(format!("{name} uses {}: the arrows of the pipeline point the other way", need.name)),
            None if need.own => Some(format!("{name} uses {}: no such place in the pipeline", need.name)),
            None if need.why == Why::Tests => None,
            None if place.from_outside.is_none_or(|allowed| allowed.contains(&need.name.as_str())) => None,
            None => Some(format!("{name} uses {}: not known to do no I/O (xtask/src/tidy/edges.rs)", need.name)),
        })
        .collect()
}

fn find(package: &str) -> Option<&'static Place> {
    PLACES.iter().find(|place| place.package == package)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Need;

    fn package(name: &str, folder: &str, needs: &[(&str, Why)]) -> Package {
        let need = |&(name, why): &(&str, Why)| Need { name: name.into(), why, own: name.starts_with("quell") };
        Package {
            name: name.into(),
            folder: folder.into(),
            needs: needs.iter().map(need).collect(),
            programs: Vec::new(),
        }
    }

    fn count(name: &str, folder: &str, needs: &[(&str, Why)]) -> usize {
        problems(&[package(name, folder, needs)]).len()
    }

    #[test]
    fn an_arrow_to_the_left_is_fine() {
        let needs = [("quell-units", Why::Code), ("quell-kfile", Why::Code), ("serde", Why::Code)];
        assert_eq!(count("quell-engine", "engine", &needs), 0);
    }

    #[test]
    fn an_arrow_to_the_right_is_refused_in_code_and_in_tests() {
        assert_eq!(count("quell-kfile", "kfile", &[("quell-engine", Why::Code)]), 1);
        assert_eq!(count("quell-kfile", "kfile", &[("quell-engine", Why::Tests)]), 1);
        assert_eq!(count("quell-load", "load", &[("quell-agent", Why::Code)]), 1, "neighbours");
        assert_eq!(count("quell-trace", "trace", &[("quell-host", Why::Code)]), 1, "trace hangs on the engine");
    }

    #[test]
    fn only_the_tests_of_cli_may_use_all() {
        assert_eq!(count("quell", "cli", &[("xtask", Why::Tests)]), 0);
        assert_eq!(count("quell", "cli", &[("xtask", Why::Code)]), 1);
        assert_eq!(count("quell-agent", "agent", &[("xtask", Why::Tests)]), 1);
    }

    #[test]
    fn a_crate_without_a_place_is_refused() {
        assert_eq!(count("quell-common", "common", &[]), 1);
        assert_eq!(count("quell-units", "numbers", &[]), 1, "the folder is not the one of the table");
        assert_eq!(count("quell-host", "host", &[("quell-common", Why::Code)]), 1);
    }

    #[test]
    fn a_crate_without_io_uses_no_crate_that_may_do_it() {
        assert_eq!(count("quell-engine", "engine", &[("rustix", Why::Code)]), 1);
        assert_eq!(count("quell-engine", "engine", &[("rustix", Why::Build)]), 1);
        assert_eq!(count("quell-engine", "engine", &[("proptest", Why::Tests)]), 0);
        assert_eq!(count("quell-host", "host", &[("rustix", Why::Code)]), 0);
    }

    #[test]
    fn the_table_itself_points_left() {
        for (at, place) in PLACES.iter().enumerate() {
            for used in place.may_use {
                assert!(order(used) < at, "{} -> {used}", place.folder);
            }
        }
    }
}
