//! Every rule of the doctor is in its table: a file that nobody calls would look like a diagnosis and never speak.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::Item;

use super::RustFile;

const DIR: &str = "crates/engine/src/findings/";

/// The name of a rule in its file.
const RULE: &str = "RULE";

/// Every rule that the table does not name.
pub(super) fn problems(sources: &[RustFile]) -> Vec<String> {
    let table = sources.iter().find(|file| file.path == format!("{DIR}table.rs"));
    let mut named = BTreeSet::new();
    if let Some(table) = table {
        rules_in(table.syntax.to_token_stream(), &mut named);
    }
    let rules = sources.iter().filter_map(|file| Some((file, rule_name(file)?)));
    rules
        .filter(|(_, rule)| !named.contains(*rule))
        .map(|(file, _)| format!("{}: a rule that findings/table.rs does not name", file.path))
        .collect()
}

/// The name of the rule in a file right below the folder; `None` where it holds no rule.
fn rule_name(file: &RustFile) -> Option<&str> {
    let name = file.path.strip_prefix(DIR)?.strip_suffix(".rs").filter(|name| !name.contains('/'))?;
    let holds = file.syntax.items.iter().any(|item| match item {
        Item::Const(item) => item.ident == RULE,
        Item::Static(item) => item.ident == RULE,
        _ => false,
    });
    holds.then_some(name)
}

/// The names before every `::RULE`. In the tokens and not in the text: a comment calls nobody.
fn rules_in(tokens: TokenStream, named: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for window in tokens.windows(4) {
        if let [TokenTree::Ident(name), TokenTree::Punct(_), TokenTree::Punct(_), TokenTree::Ident(rule)] = window
            && rule == RULE
        {
            named.insert(name.to_string());
        }
    }
    for token in tokens {
        if let TokenTree::Group(group) = token {
            rules_in(group.stream(), named);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::source;
    use super::*;

    fn found(table: &str) -> Vec<String> {
        let file = |name: &str, text: &str| source(&format!("{DIR}{name}"), text);
        problems(&[
            file("table.rs", table),
            file("swap_io.rs", "pub(super) const RULE: Rule = Rule { id: \"swap-io\" };"),
            file("slow_device.rs", "pub(super) static RULE: Rule = Rule { id: \"slow-device\" };"),
            file("rank.rs", "fn rank() { table::rule(RULE.id) }"),
            file("scene/disk.rs", "const RULE: u8 = 0;"),
        ])
    }

    #[test]
    fn a_rule_that_the_table_does_not_name_is_refused() {
        let both = "static RULES: &[Line] = &[line(swap_io::RULE, &[]), line(slow_device::RULE, &[])];";
        assert_eq!(found(both), Vec::<String>::new());
        let one = "// slow_device::RULE\nuse super::slow_device;\nstatic RULES: &[Line] = &[line(swap_io::RULE, &[])];";
        assert_eq!(found(one), [format!("{DIR}slow_device.rs: a rule that findings/table.rs does not name")]);
        assert_eq!(found("").len(), 2);
    }
}
