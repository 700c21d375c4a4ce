//! The homes of the users that run containers of their own.
//!
//! Their stores lie in their homes, and only `/etc/passwd` says where those are. Of it a capture keeps the number and
//! the home of the users in question, in its own format, and nobody's name.

use std::collections::BTreeSet;

use quell_units::CgroupPath;

use crate::reader::Reader;

const PASSWD: &[u8] = b"etc/passwd";

/// The homes of users, below the root, of those that have an entry.
pub(super) fn homes(reader: &mut Reader, uids: &BTreeSet<u32>) -> Vec<Vec<u8>> {
    if uids.is_empty() {
        return Vec::new();
    }
    let bytes = reader.read_reduced(PASSWD, |bytes| reduce(bytes, uids)).unwrap_or_default();
    let rows = bytes.split(|&b| b == b'\n').filter_map(row);
    rows.map(|(_, home)| home.to_vec()).collect()
}

/// The user whose service manager a cgroup lies below: `user.slice/user-1000.slice/user@1000.service/…`.
pub(super) fn user_of(path: &CgroupPath) -> Option<u32> {
    path.components().find_map(|part| {
        let uid = part.strip_prefix(b"user@")?.strip_suffix(b".service")?;
        std::str::from_utf8(uid).ok()?.parse().ok()
    })
}

fn reduce(bytes: &[u8], uids: &BTreeSet<u32>) -> Vec<u8> {
    let rows = bytes.split(|&b| b == b'\n').filter_map(row).filter(|(uid, _)| uids.contains(uid));
    rows.flat_map(|(uid, home)| [format!("x:x:{uid}:{uid}::").as_bytes(), home, b":\n"].concat()).collect()
}

/// `NAME:PASSWORD:UID:GID:COMMENT:HOME:SHELL`.
fn row(line: &[u8]) -> Option<(u32, &[u8])> {
    let mut fields = line.split(|&b| b == b':').skip(2);
    let uid = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let home = fields.nth(2)?;
    (home.starts_with(b"/") && home.len() > 1).then_some((uid, home))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_homes_of_the_asked_for_are_left() {
        let text = b"root:x:0:0:root:/root:/bin/bash\nalice:$6$secret:1000:100:Alice:/home/alice:/bin/sh\ntorn:x:1000";
        assert_eq!(reduce(text, &BTreeSet::from([1000])), b"x:x:1000:1000::/home/alice:\n");
        assert_eq!(reduce(text, &BTreeSet::from([7])), b"");
    }

    #[test]
    fn a_user_is_known_by_the_service_manager() {
        let of = |path: &str| user_of(&CgroupPath::new(path.as_bytes()).unwrap());
        assert_eq!(of("user.slice/user-1000.slice/user@1000.service/user.slice/libpod-aa.scope"), Some(1000));
        assert_eq!(of("user.slice/user-1000.slice/session-1.scope"), None);
    }
}
