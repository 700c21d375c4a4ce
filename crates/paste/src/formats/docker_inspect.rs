//! `docker inspect` and `podman inspect`: the limits that a container was started with.

use serde_json::{Map, Value};

use crate::json::number;
use crate::pasted::{Pasted, Statement};
use quell_units::whole;

/// The lists of limits in `HostConfig`, and io.max's key for each.
const LISTS: [(&str, &str); 4] = [
    ("BlkioDeviceReadBps", "rbps"),
    ("BlkioDeviceWriteBps", "wbps"),
    ("BlkioDeviceReadIOps", "riops"),
    ("BlkioDeviceWriteIOps", "wiops"),
];

/// Takes what `inspect` prints: a list of containers, or one.
pub(super) fn take(value: &Value, pasted: &mut Pasted) -> bool {
    let containers: Vec<&Value> = value.as_array().map_or_else(|| vec![value], |list| list.iter().collect());
    let mut taken = false;
    for container in containers.into_iter().filter_map(Value::as_object) {
        // People cut the configuration out of its container.
        let config = container.get("HostConfig").and_then(Value::as_object).unwrap_or(container);
        let is_config = config.keys().any(|key| key.starts_with("Blkio"));
        if is_config {
            let name = container.get("Name").and_then(Value::as_str).unwrap_or_default().trim_start_matches('/');
            limits(config, if name.is_empty() { "docker" } else { name }, pasted);
            taken = true;
        }
    }
    taken
}

fn limits(config: &Map<String, Value>, by: &str, pasted: &mut Pasted) {
    let text = |object: &Value, key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    for (list, key) in LISTS {
        for limit in config.get(list).and_then(Value::as_array).into_iter().flatten() {
            if let Some(value) = limit.get("Rate").and_then(number) {
                let statement = Statement::LimitAsked {
                    by: by.to_owned(),
                    device: text(limit, "Path"),
                    key: key.to_owned(),
                    value: whole(value),
                };
                pasted.statements.push(statement);
            }
        }
    }
    let mut weight = |device: String, value: Option<f64>| {
        // 0 is what docker keeps where nothing was asked for.
        if let Some(weight) = value.map(whole).filter(|weight| *weight > 0) {
            pasted.statements.push(Statement::WeightAsked { by: by.to_owned(), device, weight });
        }
    };
    weight(String::new(), config.get("BlkioWeight").and_then(number));
    for one in config.get("BlkioWeightDevice").and_then(Value::as_array).into_iter().flatten() {
        weight(text(one, "Path"), one.get("Weight").and_then(number));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use crate::pasted::Statement;

    #[test]
    fn the_limits_of_a_container_are_taken_and_zeros_are_not() {
        let text = r#"[ { "Name": "/db", "HostConfig": { "BlkioWeight": 0, "BlkioWeightDevice": [],
            "BlkioDeviceWriteBps": [ { "Path": "/dev/sda2", "Rate": 1048576 } ], "BlkioDeviceReadBps": null } } ]
"#;
        let asked =
            Statement::LimitAsked { by: "db".into(), device: "/dev/sda2".into(), key: "wbps".into(), value: 1_048_576 };
        assert_eq!(read(text).statements, [asked]);
    }
}
