//! Control dependence, slices with distances, failure sites and what other values would do to them.

use std::collections::BTreeSet;
use std::sync::Arc;

use raddle_code::{
    BlockId, ControlDependence, FailureSite, FailureSites, Fate, SiteKind, SiteNames,
};
use raddle_symbols::Module;

use crate::fixture::{compile, function, graph};

const LEVELS: [&str; 3] = ["-O0", "-O1", "-O2"];

fn sites(level: &str, most: u32) -> (Arc<Module>, FailureSites) {
    let module = Arc::new(compile("failures.c", &[level]));
    let sites = FailureSites::new(&module, &SiteNames::default(), most);
    (module, sites)
}

/// The sites of a function.
fn within(module: &Module, sites: &FailureSites, name: &str) -> Vec<FailureSite> {
    let function = function(module, name);
    let end = function.address.plus(function.size);
    let cold = module.symbols().by_name(&format!("{name}.cold"));
    let is_cold = |at| {
        let mut cold = cold.iter();
        cold.any(|part| part.address <= at && at < part.address.plus(part.size))
    };
    let inside =
        |site: &&FailureSite| (function.address <= site.at && site.at < end) || is_cold(site.at);
    sites.sites.iter().filter(inside).cloned().collect()
}

/// The variables that the critical reads of a site name directly.
fn variables(module: &Module, site: &FailureSite) -> BTreeSet<String> {
    let reads = site.reads.keys();
    let instructions = reads.filter_map(|read| {
        let symbol = module.symbols().function_at(*read)?;
        let graph = graph(module, &symbol.name);
        let (block, index) = graph.find(*read)?;
        graph.blocks[block.0].instructions[index].fixed_operand
    });
    let symbols = instructions.filter_map(|place| module.symbols().object_at(place));
    symbols.map(|symbol| symbol.name.to_string()).collect()
}

#[test]
fn a_branch_decides_about_its_arms_and_not_about_what_follows() {
    let module = compile("shapes.c", &["-O0"]);
    let graph = graph(&module, "diamond");
    let control = ControlDependence::new(&graph);
    let on = |block| control.of(BlockId(block)).collect::<Vec<_>>();
    assert_eq!(on(0), []);
    assert_eq!(on(1), [BlockId(0)]);
    assert_eq!(on(2), [BlockId(0)]);
    assert_eq!(on(3), []);
}

#[test]
fn a_loop_decides_about_its_own_next_round() {
    let module = compile("shapes.c", &["-O1"]);
    let graph = graph(&module, "nested");
    let control = ControlDependence::new(&graph);
    let loops = crate::fixture::loops(&graph);
    for natural in &loops.all {
        let mut deciders = control.of(natural.header);
        assert!(deciders.any(|block| natural.body.contains(&block)));
    }
}

#[test]
fn each_kind_of_site_has_its_critical_reads() {
    for level in LEVELS {
        let (module, sites) = sites(level, 4);
        let only = |name: &str, kind: SiteKind| {
            let found = within(&module, &sites, name);
            let of_kind = found.iter().filter(|site| site.kind == kind);
            let variables = of_kind.flat_map(|site| variables(&module, site));
            variables.collect::<BTreeSet<_>>()
        };
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let assertion = SiteKind::Assertion;
        assert_eq!(only("asserted", assertion), set(&["flag"]), "{level}");
        assert_eq!(only("reported", SiteKind::Error), set(&["flag"]), "{level}");
        assert_eq!(
            only("printed", SiteKind::Output),
            set(&["other"]),
            "{level}"
        );
        assert_eq!(only("waits", SiteKind::Loop), set(&["flag"]), "{level}");
        // Unoptimised code takes two steps more, by way of the stack.
        let is_close = level != "-O0";
        let chained = only("chained", assertion);
        assert_eq!(chained.contains("pointer"), is_close, "{level}");
        assert_eq!(only("remote", assertion), set(&[]), "{level}");
    }
}

#[test]
fn a_longer_distance_reaches_further() {
    let (module, sites) = sites("-O1", 20);
    let found = within(&module, &sites, "remote");
    assert!(variables(&module, &found[0]).contains("far"));
}

#[test]
fn another_value_leads_to_the_site_or_past_it() {
    for level in LEVELS {
        let (module, mut sites) = sites(level, 4);
        let mut fate = |name: &str, kind: SiteKind, value: u64| {
            let found = within(&module, &sites, name);
            let site = found.into_iter().find(|site| site.kind == kind);
            let site = site.expect("it has such a site");
            let (read, _) = site.reads.first_key_value().expect("it has a read");
            sites.fate(&site, *read, value)
        };
        assert_eq!(
            fate("asserted", SiteKind::Assertion, 4),
            Fate::Comes,
            "{level}"
        );
        assert_eq!(
            fate("asserted", SiteKind::Assertion, 3),
            Fate::Misses,
            "{level}"
        );
        assert_eq!(fate("reported", SiteKind::Error, 8), Fate::Comes, "{level}");
        assert_eq!(
            fate("reported", SiteKind::Error, 7),
            Fate::Misses,
            "{level}"
        );
        let negative = u64::from(u32::MAX);
        assert_eq!(
            fate("reported", SiteKind::Error, negative),
            Fate::Misses,
            "{level}"
        );
    }
}
