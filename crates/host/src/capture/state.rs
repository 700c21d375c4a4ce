//! Scrubbing the state of container runtimes: what reading has left of it, without its names.
//!
//! The rules say what may stay and not what must go: each text in a file becomes neutral unless its field is known to
//! hold a word of the runtime's own. So a field that a later reader adds cannot carry a name out.

use serde_json::Value;

use super::names::{Names, node};
use crate::file_stat::STAT;
use crate::reader::join;
use crate::recording::Seen;

/// What is seen below a path that belongs to a runtime's state, with neutral names; `None` where no rule knows it.
pub(super) fn entry(names: &mut Names, path: &[u8], seen: &Seen) -> Option<(Vec<u8>, Seen)> {
    let to = place(names, path)?;
    let seen = match seen {
        Seen::Dir | Seen::Failed(_) => seen.clone(),
        Seen::Link(target) => Seen::Link(log_path(names, target)),
        Seen::File(bytes) if path == b"etc/passwd" => Seen::File(passwd(names, bytes)),
        // A layer's id.
        Seen::File(bytes) if path.ends_with(b"/mount-id") => Seen::File(names.component(bytes.trim_ascii())),
        // Numbers, of a file that is not kept.
        Seen::File(bytes) if is_stat(path) => Seen::File(bytes.clone()),
        Seen::File(bytes) => Seen::File(json(names, bytes)),
    };
    Some((to, seen))
}

/// The path of a state file or of a directory that leads to one.
fn place(names: &mut Names, path: &[u8]) -> Option<Vec<u8>> {
    let parts: Vec<&[u8]> = path.split(|&b| b == b'/').collect();
    Some(match parts.as_slice() {
        [b"etc", b"docker", b"daemon.json"] | [b"etc", b"passwd"] => path.into(),
        [b"var", b"snap", b"docker", b"current", b"config", b"daemon.json"] => path.into(),
        [b"var", b"log", b"containers" | b"pods"] => path.into(),
        [b"var", b"log", b"containers" | b"pods", _] => log_path(names, path),
        [root @ .., b"containers", id, file @ (b"config.v2.json" | b"hostconfig.json")] => {
            join(&[&root_of(names, root), b"containers", &names.component(id), file])
        }
        [root @ .., b"containers", id, name] if name.starts_with(STAT) => {
            let log = names.component(name.strip_prefix(STAT).unwrap_or_default());
            join(&[&root_of(names, root), b"containers", &names.component(id), &[STAT, &log].concat()])
        }
        [root @ .., b"image", driver, b"layerdb", b"mounts", id, b"mount-id"] => {
            let id = names.component(id);
            join(&[&root_of(names, root), b"image", driver, b"layerdb/mounts", &id, b"mount-id"])
        }
        [root @ .., dir, list @ (b"containers.json" | b"volatile-containers.json")] => {
            join(&[&root_of(names, root), dir, list])
        }
        [root @ .., dir, id, b"userdata", b"config.json"] if dir.ends_with(b"-containers") => {
            join(&[&root_of(names, root), dir, &names.component(id), b"userdata/config.json"])
        }
        [root @ .., tasks @ b"io.containerd.runtime.v2.task"] => join(&[&root_of(names, root), tasks]),
        [root @ .., tasks @ b"io.containerd.runtime.v2.task", namespace] => {
            join(&[&root_of(names, root), tasks, &namespace_of(names, namespace)])
        }
        [root @ .., tasks @ b"io.containerd.runtime.v2.task", namespace, id, b"config.json"] => {
            let (root, namespace) = (root_of(names, root), namespace_of(names, namespace));
            join(&[&root, tasks, &namespace, &names.component(id), b"config.json"])
        }
        _ => return None,
    })
}

fn is_stat(path: &[u8]) -> bool {
    path.rsplit(|&b| b == b'/').next().is_some_and(|name| name.starts_with(STAT))
}

/// The directories above a runtime's own: the well-known ones stay by their words.
fn root_of(names: &mut Names, root: &[&[u8]]) -> Vec<u8> {
    names.path(&root.join(&b'/'))
}

/// A namespace of containerd; that of docker says which runtime it is.
fn namespace_of(names: &mut Names, namespace: &[u8]) -> Vec<u8> {
    if namespace == b"moby" { namespace.into() } else { names.component(namespace) }
}

/// A path among Kubernetes' logs: `shop_cart-7d_8a5f1c2e-…`, `cart-7d_shop_web-3f5c….log`.
fn log_path(names: &mut Names, path: &[u8]) -> Vec<u8> {
    let parts: Vec<Vec<u8>> = path.split(|&b| b == b'/').map(|part| words(names, part)).collect();
    parts.join(&b'/')
}

/// A name whose parts are joined by underscores, as the kubelet makes them, each replaced alone.
fn words(names: &mut Names, name: &[u8]) -> Vec<u8> {
    let parts: Vec<Vec<u8>> = name.split(|&b| b == b'_').map(|part| names.component(part)).collect();
    parts.join(&b'_')
}

/// `x:x:UID:GID::HOME:`, which is all that reading leaves.
fn passwd(names: &mut Names, bytes: &[u8]) -> Vec<u8> {
    let row = |line: &[u8]| -> Option<Vec<u8>> {
        let fields: Vec<&[u8]> = line.split(|&b| b == b':').collect();
        let [_, _, uid, gid, _, home, _] = fields.as_slice() else { return None };
        Some([b"x:x:", *uid, b":", *gid, b"::", &names.path(home), b":\n"].concat())
    };
    bytes.split(|&b| b == b'\n').filter_map(row).flatten().collect()
}

fn json(names: &mut Names, bytes: &[u8]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice(bytes) else { return Vec::new() };
    neutral(names, "", &mut value);
    serde_json::to_vec(&value).unwrap_or_default()
}

/// Replaces every text of a value, which stands under `key`.
fn neutral(names: &mut Names, key: &str, value: &mut Value) {
    match value {
        Value::String(text) => *text = neutral_text(names, key, text),
        Value::Array(items) => items.iter_mut().for_each(|item| neutral(names, key, item)),
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| neutral(names, key, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn neutral_text(names: &mut Names, key: &str, text: &str) -> String {
    let lossy = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    match key {
        // JSON within JSON.
        "metadata" => lossy(json(names, text.as_bytes())),
        // Words of the runtime's own, and sizes; a plugin's name is somebody's.
        "Driver"
        | "Type"
        | "io.kubernetes.docker.type"
        | "io.kubernetes.cri.container-type"
        | "io.kubernetes.cri-o.ContainerType"
            if KEPT_WORDS.contains(&text) =>
        {
            text.to_owned()
        }
        "max-size" | "size" if is_size(text) => text.to_owned(),
        // The same as the cgroup's own path; systemd's form is taken apart at its colons.
        "cgroupsPath" => {
            let parts: Vec<Vec<u8>> = text.split(':').map(|part| names.path(part.as_bytes())).collect();
            lossy(parts.join(&b':'))
        }
        "Path" if text.starts_with("/dev/") => lossy(node(names, text.as_bytes())),
        // An id, or a name that is a container's directory and cgroup too.
        "id" | "layer" => lossy(names.component(text.as_bytes())),
        _ => lossy(log_path(names, text.as_bytes())),
    }
}

/// Drivers of storage and logs, and kinds of containers.
const KEPT_WORDS: [&str; 22] = [
    "overlay2",
    "overlay",
    "overlayfs",
    "vfs",
    "btrfs",
    "zfs",
    "devicemapper",
    "fuse-overlayfs",
    "json-file",
    "local",
    "journald",
    "syslog",
    "none",
    "fluentd",
    "gelf",
    "awslogs",
    "splunk",
    "gcplogs",
    "k8s-file",
    "sandbox",
    "podsandbox",
    "container",
];

fn is_size(text: &str) -> bool {
    text.len() <= 16 && text.bytes().all(|b| b.is_ascii_digit() || b" .kKmMgGtTpPiIbB".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubbed(names: &mut Names, path: &str, text: &str) -> (String, String) {
        let seen = Seen::File(text.as_bytes().into());
        match entry(names, path.as_bytes(), &seen) {
            Some((path, Seen::File(bytes))) => (String::from_utf8(path).unwrap(), String::from_utf8(bytes).unwrap()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_name_is_the_same_in_state_and_in_paths() {
        let mut names = Names::default();
        let id = "3f5c9d2ab1e0".repeat(6)[..64].to_owned();
        let (path, text) = scrubbed(
            &mut names,
            &format!("srv/acme/docker/containers/{id}/config.v2.json"),
            r#"{"Name":"/payroll","Driver":"overlay2","Config":{"Image":"acme/payroll:8"}}"#,
        );
        let cgroup = String::from_utf8(names.path(format!("docker/{id}").as_bytes())).unwrap();
        let id = cgroup.strip_prefix("docker/").unwrap();
        assert_eq!(path, format!("srv/name1/docker/containers/{id}/config.v2.json"));
        assert_eq!(text, r#"{"Config":{"Image":"name1/name2:8"},"Driver":"overlay2","Name":"/name2"}"#);
        let (_, text) = scrubbed(&mut names, "etc/docker/daemon.json", r#"{"data-root":"/srv/acme/docker"}"#);
        assert_eq!(text, r#"{"data-root":"/srv/name1/docker"}"#);
    }

    #[test]
    fn a_field_that_no_rule_knows_is_neutral() {
        let mut names = Names::default();
        let file = "var/lib/docker/containers/x/hostconfig.json";
        let (_, text) = scrubbed(&mut names, file, r#"{"New":"acme","Driver":"acme/plugin","size":"acme"}"#);
        assert!(!text.contains("acme") && !text.contains("plugin"), "{text}");
    }

    #[test]
    fn the_store_s_inner_json_is_scrubbed_too() {
        let mut names = Names::default();
        let file = "var/lib/containers/storage/overlay-containers/containers.json";
        let text = r#"[{"id":"a","names":["payroll"],"metadata":"{\"image-name\":\"acme:1\"}"},null]"#;
        let (path, text) = scrubbed(&mut names, file, text);
        assert_eq!(path, file);
        assert_eq!(text, r#"[{"id":"name1","metadata":"{\"image-name\":\"name2:1\"}","names":["name3"]},null]"#);
    }

    #[test]
    fn what_is_no_state_is_not_known() {
        assert_eq!(entry(&mut Names::default(), b"etc/shadow", &Seen::Dir), None);
        assert_eq!(entry(&mut Names::default(), b"home/alice", &Seen::Link(b"x".to_vec())), None);
    }
}
