//! What somebody may have meant: the names most like one that is not there.

/// At most this many names are suggested.
const COUNT_MAX: usize = 3;

/// Below this likeness (Jaro-Winkler, 0 to 1) a name has little in common with what was typed.
const LIKENESS_MIN: f64 = 0.7;

/// The names most like `typed`, the nearest first; none where nothing is near.
#[must_use]
pub(crate) fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let likeness = |name: &str| {
        // `mysqld` is near `unit/mysql.service`, and `podman/1f2e` near `docker/1f2e3d`, whatever stands in front.
        strsim::jaro_winkler(typed, name).max(strsim::jaro_winkler(last(typed), last(name)))
    };
    let mut near: Vec<(f64, &str)> = names.into_iter().map(|name| (likeness(name), name)).collect();
    near.retain(|(likeness, _)| *likeness >= LIKENESS_MIN);
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    near.dedup_by_key(|(_, name)| *name);
    near.into_iter().take(COUNT_MAX).map(|(_, name)| name).collect()
}

/// A name without its prefix or folders.
fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// `did you mean a, b or c?`, or nothing where no name is near.
#[must_use]
pub(crate) fn did_you_mean(near: &[&str]) -> Option<String> {
    let (last, others) = near.split_last()?;
    let list = if others.is_empty() { (*last).to_string() } else { format!("{} or {last}", others.join(", ")) };
    Some(format!("did you mean {list}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_name() {
        let ids = ["noisy-neighbour", "device-hung", "serial-issuer"];
        assert_eq!(nearest("noisy-neighbor", ids), ["noisy-neighbour"]);
        assert!(nearest("zzz", ids).is_empty());
    }

    #[test]
    fn suggestions_read_as_a_sentence() {
        assert_eq!(did_you_mean(&["a", "b", "c"]).unwrap(), "did you mean a, b or c?");
        assert_eq!(did_you_mean(&["a"]).unwrap(), "did you mean a?");
        assert_eq!(did_you_mean(&[]), None);
    }
}
