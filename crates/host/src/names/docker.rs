//! Docker's state: `containers/ID/config.v2.json` and `hostconfig.json` below its data root.
//!
//! The data root may be moved by `daemon.json`; the snap has one of its own, and so has each user's docker.

use quell_engine::snapshot::{AskedDevice, AskedKey, AskedLimit, Container};
use quell_units::{Bytes, CgroupPath};
use serde::{Deserialize, Serialize};

use super::annotations::{Annotations, pod_of_name};
use super::state::{noted, read_json, text, text_of};
use super::{ROOTS_MAX, nameless};
use crate::gaps::Gaps;
use crate::reader::{Reader, join};

/// Where the daemon is configured: the packages' file and the snap's.
const DAEMON_FILES: [&[u8]; 2] = [b"etc/docker/daemon.json", b"var/snap/docker/current/config/daemon.json"];

/// Where its state lies unless told otherwise: the packages' place and the snap's.
const ROOTS: [&[u8]; 2] = [b"var/lib/docker", b"var/snap/docker/common/var-lib-docker"];

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Daemon {
    #[serde(rename = "data-root", alias = "graph", skip_serializing_if = "Option::is_none")]
    data_root: Option<String>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "PascalCase")]
struct Config {
    name: Option<String>,
    driver: Option<String>,
    log_path: Option<String>,
    config: Option<Inner>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "PascalCase")]
struct Inner {
    image: Option<String>,
    labels: Option<Annotations>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "PascalCase")]
struct HostConfig {
    blkio_weight: Option<u64>,
    blkio_weight_device: Option<Vec<OnDevice>>,
    blkio_device_read_bps: Option<Vec<OnDevice>>,
    blkio_device_write_bps: Option<Vec<OnDevice>>,
    #[serde(rename = "BlkioDeviceReadIOps")]
    blkio_device_read_iops: Option<Vec<OnDevice>>,
    #[serde(rename = "BlkioDeviceWriteIOps")]
    blkio_device_write_iops: Option<Vec<OnDevice>>,
    storage_opt: Option<StorageOpt>,
    log_config: Option<LogConfig>,
}

#[derive(Debug, Deserialize, Serialize)]
struct OnDevice {
    #[serde(rename = "Path")]
    path: String,
    #[serde(rename = "Rate", alias = "Weight")]
    value: u64,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct StorageOpt {
    size: Option<String>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct LogConfig {
    #[serde(rename = "Type")]
    driver: Option<String>,
    #[serde(rename = "Config")]
    options: Option<LogOptions>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct LogOptions {
    #[serde(rename = "max-size")]
    size_max: Option<String>,
}

/// The data roots of the host's docker: those that are configured come first.
pub(super) fn roots(reader: &mut Reader, gaps: &mut Gaps) -> Vec<Vec<u8>> {
    let mut roots = Vec::new();
    for file in DAEMON_FILES {
        let daemon: Option<Daemon> = noted(read_json(reader, file), "daemon.json", file, gaps);
        let root = daemon.and_then(|daemon| daemon.data_root).filter(|root| root.starts_with('/'));
        roots.extend(root.map(|root| root.trim_matches('/').as_bytes().to_vec()));
    }
    roots.extend(ROOTS.iter().map(|root| root.to_vec()));
    roots.truncate(ROOTS_MAX);
    roots
}

/// What docker knows of a container, at the first of the roots that has it.
pub(super) fn find(
    reader: &mut Reader,
    roots: &[Vec<u8>],
    id: &str,
    cgroup: &CgroupPath,
    gaps: &mut Gaps,
) -> Option<Container> {
    roots.iter().find_map(|root| {
        let dir = join(&[root, b"containers", id.as_bytes()]);
        let file = join(&[&dir, b"config.v2.json"]);
        let config: Config = noted(read_json(reader, &file), "config.v2.json", &file, gaps)?;
        let file = join(&[&dir, b"hostconfig.json"]);
        let host: HostConfig = noted(read_json(reader, &file), "hostconfig.json", &file, gaps).unwrap_or_default();
        let name = config.name.as_deref().map(|name| name.trim_start_matches('/')).and_then(text);
        let inner = config.config.unwrap_or_default();
        let pod = inner.labels.as_ref().and_then(Annotations::pod);
        let log = host.log_config.as_ref();
        let log_size = log.and_then(|log| log.options.as_ref()?.size_max.as_deref());
        Some(Container {
            pod: pod.or_else(|| name.as_deref().and_then(pod_of_name)),
            name,
            image: text_of(inner.image.as_ref()),
            upper_dir: upper_dir(reader, root, config.driver.as_deref(), id),
            storage_size: host.storage_opt.as_ref().and_then(|opt| size(opt.size.as_deref()?, 1024)),
            log_driver: text_of(log.and_then(|log| log.driver.as_ref())),
            log_path: text_of(config.log_path.as_ref()),
            // Docker reads the size of a log in powers of 1000 and that of a layer in powers of 1024.
            log_size_max: log_size.and_then(|text| size(text, 1000)),
            asked: asked(&host),
            ..nameless(cgroup, "docker", id)
        })
    })
}

/// The directory that takes what the container writes; the layer's own id is in a file beside the images.
fn upper_dir(reader: &mut Reader, root: &[u8], driver: Option<&str>, id: &str) -> Option<String> {
    let driver = driver.filter(|driver| *driver == "overlay2")?;
    let file = join(&[root, b"image", driver.as_bytes(), b"layerdb/mounts", id.as_bytes(), b"mount-id"]);
    let layer = std::str::from_utf8(reader.read_head(&file, 256).ok()?).ok()?.trim().to_owned();
    let is_plain = !layer.is_empty() && layer.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    is_plain.then(|| format!("/{}/{driver}/{layer}/diff", quell_units::escape(root)))
}

fn asked(host: &HostConfig) -> Vec<AskedLimit> {
    let of_all = host.blkio_weight.filter(|weight| *weight > 0);
    let of_all = of_all.map(|value| AskedLimit { device: None, key: AskedKey::Weight, value });
    let of_one = [
        (&host.blkio_weight_device, AskedKey::Weight),
        (&host.blkio_device_read_bps, AskedKey::ReadBytes),
        (&host.blkio_device_write_bps, AskedKey::WriteBytes),
        (&host.blkio_device_read_iops, AskedKey::ReadIos),
        (&host.blkio_device_write_iops, AskedKey::WriteIos),
    ];
    let of_one = of_one.into_iter().flat_map(|(rows, key)| {
        rows.iter().flatten().filter_map(move |row| {
            let device = Some(AskedDevice::Node(text(&row.path)?));
            Some(AskedLimit { device, key, value: row.value })
        })
    });
    of_all.into_iter().chain(of_one).collect()
}

/// A size as docker writes it, `10m`, `1.5GB`, `120GiB`: in powers of `base`, whatever the unit's spelling.
fn size(text: &str, base: u32) -> Option<Bytes> {
    let text = text.trim().to_ascii_lowercase();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let unit = unit.trim().strip_suffix('b').unwrap_or(unit.trim());
    let power = match unit.strip_suffix('i').unwrap_or(unit) {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    Some(Bytes(quell_units::whole(number * f64::from(base).powi(power))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_docker_reads_them() {
        for (text, base, bytes) in [
            ("10m", 1000, Some(10_000_000)),
            ("120GiB", 1024, Some(120 << 30)),
            ("1.5g", 1024, Some(3 << 29)),
            ("512", 1024, Some(512)),
            ("20 MB", 1000, Some(20_000_000)),
            ("-1", 1000, None),
            ("", 1000, None),
            ("ten", 1000, None),
        ] {
            assert_eq!(size(text, base), bytes.map(Bytes), "{text}");
        }
    }

    #[test]
    fn limits_that_were_not_asked_for_are_none() {
        let host: HostConfig =
            serde_json::from_str(r#"{"BlkioWeight":0,"BlkioDeviceReadBps":null,"BlkioWeightDevice":[]}"#).unwrap();
        assert_eq!(asked(&host), []);
        let host: HostConfig = serde_json::from_str(
            r#"{"BlkioWeight":300,"BlkioDeviceWriteIOps":[{"Path":"/dev/vda","Rate":500}],
                "BlkioWeightDevice":[{"Path":"/dev/vda","Weight":20}]}"#,
        )
        .unwrap();
        let on_vda = |key, value| AskedLimit { device: Some(AskedDevice::Node("/dev/vda".into())), key, value };
        let of_all = AskedLimit { device: None, key: AskedKey::Weight, value: 300 };
        assert_eq!(asked(&host), [of_all, on_vda(AskedKey::Weight, 20), on_vda(AskedKey::WriteIos, 500)]);
    }
}
