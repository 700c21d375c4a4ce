//! `lsblk -J`: the devices as a tree, whatever columns were asked for.

use serde_json::{Map, Value};

use crate::pasted::{DeviceFact, Pasted};

/// Takes a document of lsblk's.
pub(super) fn take(value: &Value, pasted: &mut Pasted) -> bool {
    let Some(devices) = value.get("blockdevices").and_then(Value::as_array) else { return false };
    devices.iter().filter_map(Value::as_object).for_each(|device| add(device, None, pasted));
    true
}

fn add(device: &Map<String, Value>, above: Option<&str>, pasted: &mut Pasted) {
    let text = |key: &str| device.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
    let flag = |key: &str| match device.get(key)? {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => Some(text == "1"),
        _ => None,
    };
    let Some(name) = text("kname").or_else(|| text("name")) else { return };
    let mounts = device.get("mountpoints").and_then(Value::as_array).into_iter().flatten();
    let mounts = mounts.filter_map(Value::as_str).map(ToOwned::to_owned).chain(text("mountpoint"));
    pasted.add_device(DeviceFact {
        name: name.clone(),
        dev: text("maj:min").and_then(|dev| dev.trim().parse().ok()),
        kind: text("type"),
        below: above.map(ToOwned::to_owned).into_iter().collect(),
        mounts: mounts.collect(),
        rotational: flag("rota"),
        scheduler: text("sched"),
        model: text("model"),
        ..DeviceFact::default()
    });
    let children = device.get("children").and_then(Value::as_array).into_iter().flatten();
    children.filter_map(Value::as_object).for_each(|child| add(child, Some(&name), pasted));
}
