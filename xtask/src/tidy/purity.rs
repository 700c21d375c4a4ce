//! No effect and no clock in the crates that decide: `units`, `kfile`, `engine`.
//!
//! The rule is a list of what they may use of the standard library, not of what they may not: a list of the forbidden
//! would miss `Path::exists` and whatever a later Rust adds. Parsed with `syn` and not searched for, so that comments and
//! strings are no problem, `use std::{fs as f}` is one, and what `#[cfg(test)]` guards is left out. Everything else is
//! read as tokens, because a path may also stand inside of a macro, where there is no syntax tree.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Attribute, File, Item, ItemExternCrate, ItemUse, UseTree};

use super::{RustFile, edges};

/// The modules and macros of `std`, `core` and `alloc` that are values and their text, and nothing else.
const ALLOWED: &[&str] = &[
    "any",
    "array",
    "ascii",
    "assert",
    "assert_eq",
    "borrow",
    "boxed",
    "cell",
    "char",
    "cmp",
    "collections",
    "convert",
    "debug_assert",
    "default",
    "error",
    "f32",
    "f64",
    "fmt",
    "format",
    "hash",
    "hint",
    "i16",
    "i32",
    "i64",
    "i8",
    "iter",
    "marker",
    "matches",
    "mem",
    "num",
    "ops",
    "option",
    "primitive",
    "rc",
    "result",
    "slice",
    "str",
    "string",
    "sync",
    "u128",
    "u16",
    "u32",
    "u64",
    "u8",
    "unreachable",
    "usize",
    "vec",
    "write",
    "writeln",
];

/// The part of `std::time` that is a value and no clock.
const DURATION: &str = "Duration";

/// Macros of the prelude that print.
const PRINTING: &[&str] = &["dbg", "eprint", "eprintln", "print", "println"];

const ROOTS: &[&str] = &["alloc", "core", "std"];

/// Every use of what these crates may not use.
pub(super) fn problems(sources: &[RustFile]) -> Vec<String> {
    let dirs: Vec<String> = edges::pure_folders().map(|folder| format!("crates/{folder}/src/")).collect();
    let pure = sources.iter().filter(|file| dirs.iter().any(|dir| file.path.starts_with(dir)));
    pure.flat_map(of_file).collect()
}

fn of_file(file: &RustFile) -> Vec<String> {
    let mut found = Found(BTreeSet::new());
    let code = without_tests(&file.syntax);
    found.visit_file(&code);
    found.tokens(code.to_token_stream());
    let told = |(line, what): (usize, String)| format!("{}:{line}: {what} in a crate without I/O", file.path);
    found.0.into_iter().map(told).collect()
}

/// The file without what only tests see.
fn without_tests(file: &File) -> File {
    fn keep(items: &mut Vec<Item>) {
        items.retain(|item| !attributes(item).iter().any(is_test));
        for item in items {
            if let Item::Mod(module) = item
                && let Some((_, items)) = &mut module.content
            {
                keep(items);
            }
        }
    }
    let mut file = file.clone();
    keep(&mut file.items);
    file
}

/// `#[cfg(test)]`, and no other: `cfg(any(test, unix))` is in the shipped program too.
pub(super) fn is_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// What was found: the line and what stands there. A set, since an import is seen as a tree and as tokens.
struct Found(BTreeSet<(usize, String)>);

impl<'ast> Visit<'ast> for Found {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.tree(&item.tree, &mut Vec::new());
    }

    fn visit_item_extern_crate(&mut self, item: &'ast ItemExternCrate) {
        if ROOTS.iter().any(|root| item.ident == root) {
            self.0.insert((item.ident.span().start().line, format!("extern crate {}", item.ident)));
        }
        visit::visit_item_extern_crate(self, item);
    }
}

impl Found {
    /// Takes an import apart into whole paths. A renamed root is refused with its import, so that no rename has to be
    /// followed.
    fn tree(&mut self, tree: &UseTree, path: &mut Vec<String>) {
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.tree(&part.tree, path);
                path.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(tree, path)),
            UseTree::Name(name) => self.leaf(&name.ident, path),
            UseTree::Rename(rename) => self.leaf(&rename.ident, path),
            UseTree::Glob(glob) => self.path(glob.star_token.spans[0].start().line, path),
        }
    }

    fn leaf(&mut self, name: &proc_macro2::Ident, path: &mut Vec<String>) {
        let line = name.span().start().line;
        if name == "self" {
            return self.path(line, path);
        }
        path.push(name.to_string());
        self.path(line, path);
        path.pop();
    }

    fn path(&mut self, line: usize, path: &[String]) {
        let mut parts = path.iter().map(String::as_str);
        let Some(root) = parts.next().filter(|root| ROOTS.contains(root)) else { return };
        let allowed = match parts.next() {
            Some("time") => parts.next() == Some(DURATION),
            Some(module) => ALLOWED.contains(&module),
            None => false,
        };
        if !allowed {
            let path = if path.len() == 1 { format!("all of {root}") } else { path.join("::") };
            self.0.insert((line, path));
        }
    }

    /// Looks through tokens: `unsafe`, macros that print, and paths.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = tokens.as_slice();
        while let [token, tail @ ..] = rest {
            rest = tail;
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(ident) => {
                    let (name, line) = (ident.to_string(), ident.span().start().line);
                    if name == "unsafe" {
                        self.0.insert((line, name));
                    } else if PRINTING.contains(&name.as_str()) && is_punct(tail.first(), '!') {
                        self.0.insert((line, format!("{name}!")));
                    } else if ROOTS.contains(&name.as_str()) && has_more(tail) {
                        let mut path = vec![name];
                        rest = more(tail, &mut path);
                        self.path(line, &path);
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

/// Whether a path goes on with a name; an import's group is not of this kind and is looked at as a tree.
fn has_more(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [a, b, TokenTree::Ident(_), ..] if is_punct(Some(a), ':') && is_punct(Some(b), ':'))
}

/// Appends the names that a path goes on with, and gives what follows it.
fn more<'a>(mut tokens: &'a [TokenTree], path: &mut Vec<String>) -> &'a [TokenTree] {
    while has_more(tokens)
        && let [_, _, TokenTree::Ident(name), tail @ ..] = tokens
    {
        path.push(name.to_string());
        tokens = tail;
    }
    tokens
}

fn is_punct(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

#[cfg(test)]
mod tests {
    use super::super::tests::source;
    use super::*;

    fn found(text: &str) -> Vec<String> {
        problems(&[source("crates/engine/src/x.rs", text)])
    }

    #[test]
    fn every_way_to_an_effect_is_refused() {
        for text in [
            "use std::fs;",
            "use std::{fmt, fs as f};",
            "use std::{collections::BTreeMap, process::{self, Command}};",
            "use ::std::net::TcpStream;",
            "use std::time::Instant;",
            "use std::time::{Duration, SystemTime};",
            "use std::time;",
            "use std::time as t;",
            "use std::path::Path;",
            "use std::io::Write;",
            "use std as s;",
            "use std::{self as s};",
            "use std::*;",
            "extern crate std as s;",
            "fn f() { let _ = std::fs::read(\"x\"); }",
            "fn f() { let _ = ::std::env::var(\"x\"); }",
            "fn f() -> std::time::Instant { todo!() }",
            "fn f() { std::println!(\"x\"); }",
            "fn f() { println!(\"x\"); }",
            "fn f() { if true { eprint!(\"x\") } }",
            "fn f() { dbg!(1); }",
            "fn f() -> String { format!(\"{:?}\", std::env::args()) }",
            "macro_rules! m { () => { std::process::exit(1) } }",
            "unsafe fn f() {}",
            "fn f() { unsafe { g() } }",
            "unsafe impl Send for X {}",
            "#[unsafe(no_mangle)] pub extern \"C\" fn f() {}",
            "mod inner { use std::fs; }",
            "fn f() { use std::fs; }",
            "#[cfg(any(test, unix))] mod m { use std::fs; }",
            "#[test] fn t() { std::fs::read(\"x\"); }",
        ] {
            assert!(!found(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn values_words_and_tests_are_fine() {
        for text in [
            "use std::{fmt::{self, Write as _}, collections::BTreeMap, str::FromStr};",
            "use std::time::Duration;",
            "fn f() -> std::time::Duration { std::time::Duration::ZERO }",
            "fn f() { let fs = 1; let process = fs; }",
            "/// Reads std::fs, unsafe, println!().\nfn f() {} // std::net",
            "const X: &str = \"unsafe { std::fs::read() }\";",
            "#![forbid(unsafe_code)]",
            "#[cfg(test)] mod tests { use std::fs; fn f() { println!(\"x\") } }",
            "mod a { #[cfg(test)] mod tests { use std::time::Instant; } }",
            "#[cfg(test)] use std::fs;",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn only_the_crates_without_io_are_looked_at() {
        let text = "use std::fs;";
        assert_eq!(problems(&[source("crates/host/src/x.rs", text), source("crates/kfile/tests/x.rs", text)]).len(), 0);
        assert_eq!(problems(&[source("crates/units/src/x.rs", text), source("crates/kfile/src/x.rs", text)]).len(), 2);
    }

    #[test]
    fn a_problem_names_its_file_and_line() {
        assert_eq!(found("\n\nuse std::fs;"), ["crates/engine/src/x.rs:3: std::fs in a crate without I/O"]);
    }
}
