//! Directed scheduling: holds a context exactly before an instruction until another one has passed some place.
//!
//! Where CTrigger (Park, Lu, Zhou, ASPLOS 2009), ConMem and ConSeq put a sleep before an instruction and hope,
//! a rule here is exact and its run can be had again. Everything else follows the default order.

use raddle_trace::Path;
use raddle_world::{ContextId, Site};

use crate::scheduler::{Scheduler, View};

/// Hold whoever comes to a place until somebody else has passed another place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Only this context; none for any.
    pub context: Option<Path>,
    pub at: Site,
    /// Released when another context has executed this place; none for: when nobody else can run.
    pub until: Option<Site>,
}

/// Follows rules.
#[derive(Debug, Clone)]
pub struct Directed {
    rules: Vec<Rule>,
    /// Where each context stands, by its number.
    sites: Vec<Site>,
}

#[derive(Debug, Clone)]
struct Rule {
    hold: Hold,
    /// Who is held.
    held: Option<ContextId>,
    is_over: bool,
}

impl Directed {
    pub fn new(holds: Vec<Hold>) -> Self {
        let rules = holds.into_iter().map(|hold| Rule {
            hold,
            held: None,
            is_over: false,
        });
        Self {
            rules: rules.collect(),
            sites: Vec::new(),
        }
    }

    /// Rules that held somebody and released them as they say.
    pub fn fulfilled(&self) -> usize {
        let done = self.rules.iter().filter(|r| r.is_over && r.held.is_some());
        done.count()
    }

    fn site(&self, who: ContextId) -> Site {
        self.sites
            .get(who.0 as usize)
            .copied()
            .unwrap_or(Site::NOWHERE)
    }

    fn is_held(&self, who: ContextId) -> bool {
        self.rules.iter().any(|r| !r.is_over && r.held == Some(who))
    }

    /// The current context has come to a place: some rule may take hold of it.
    fn arrive(&mut self, view: &View<'_>) {
        let path = &*view.contexts.get(view.current).path;
        let free = self.rules.iter_mut().find(|rule| {
            let is_meant = rule.hold.context.as_deref().is_none_or(|of| of == path);
            !rule.is_over && rule.held.is_none() && rule.hold.at == view.site && is_meant
        });
        if let Some(rule) = free {
            rule.held = Some(view.current);
        }
    }

    /// A context executes what it stands before: some rule may be over.
    fn pass(&mut self, who: ContextId) {
        let site = self.site(who);
        for rule in &mut self.rules {
            if rule.held.is_some_and(|held| held != who) && rule.hold.until == Some(site) {
                rule.is_over = true;
            }
        }
    }
}

impl Scheduler for Directed {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let index = view.current.0 as usize;
        if self.sites.len() <= index {
            self.sites.resize(index + 1, Site::NOWHERE);
        }
        self.sites[index] = view.site;
        self.arrive(view);
        let default = view.sensible_default();
        let start = view.runnable.partition_point(|id| *id < default);
        let order = view.runnable[start..].iter().chain(&view.runnable[..start]);
        let chosen = order.copied().find(|who| !self.is_held(*who));
        let chosen = chosen.unwrap_or_else(|| {
            // Everybody is held: the first rule gives in.
            let rule = self
                .rules
                .iter_mut()
                .find(|rule| !rule.is_over && rule.held.is_some_and(|h| view.runnable.contains(&h)))
                .expect("somebody is held by a rule");
            rule.is_over = true;
            rule.held.unwrap_or(default)
        });
        self.pass(chosen);
        chosen
    }
}
