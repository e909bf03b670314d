//! Which reads become addresses, at every level of optimisation.

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_code::{IndexReads, Role};

use crate::fixture::{compile, function, graph};

/// The roles of the variables that a function reads by name.
fn roles(level: &str, name: &str, most: u32) -> BTreeMap<String, Role> {
    let module = Arc::new(compile("indices.c", &[level]));
    let mut reads = IndexReads::new(&module, most);
    let symbols = module.symbols();
    assert!(function(&module, name).size > 0);
    let graph = graph(&module, name);
    let instructions = graph.blocks.iter().flat_map(|block| &block.instructions);
    let found = instructions.filter_map(|instruction| {
        let variable = symbols.object_at(instruction.fixed_operand?)?;
        let role = reads.of(instruction.address)?.role;
        Some((variable.name.to_string(), role))
    });
    found.collect()
}

#[test]
fn indices_lengths_and_texts_are_told_from_other_reads() {
    let cases = [
        ("indexed", Some(("place", Role::Index))),
        ("stored", Some(("place", Role::Index))),
        ("copied", Some(("count", Role::Length))),
        ("texted", Some(("text", Role::Text))),
        // Whether the value is an address itself shows when it runs.
        ("pointed", Some(("pointer", Role::Index))),
        ("only_tested", None),
        ("only_added", None),
    ];
    for level in ["-O0", "-O1", "-O2"] {
        for (name, wanted) in cases {
            let wanted = wanted.map(|(variable, role)| (variable.to_owned(), role));
            let wanted: BTreeMap<String, Role> = wanted.into_iter().collect();
            assert_eq!(roles(level, name, 3), wanted, "{name} at {level}");
        }
    }
}

#[test]
fn what_is_computed_for_long_is_no_index() {
    for level in ["-O0", "-O1", "-O2"] {
        assert!(roles(level, "too_far", 3).is_empty(), "{level}");
        assert!(roles(level, "too_far", 30).contains_key("far"), "{level}");
    }
}
