//! The JSON schemas in `docs/schema` are those of the documents.

use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    PathBuf::from(format!("{}/../../docs/schema/{name}.json", env!("CARGO_MANIFEST_DIR")))
}

#[test]
fn the_schemas_in_docs_are_those_of_the_documents() {
    for (name, schema) in quell::doc::schemas() {
        let now = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        if std::env::var_os("SCHEMAS").is_some_and(|value| value == "overwrite") {
            std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            std::fs::write(path(name), &now).unwrap();
        }
        let committed = std::fs::read_to_string(path(name)).unwrap_or_default();
        assert!(committed == now, "docs/schema/{name}.json is not this document's: run with SCHEMAS=overwrite");
    }
}
