//! The operations of a run: who did what, what it gave, and what was over before what began.

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_explore::Marked;
use raddle_stdx::Digest;
use raddle_stdx::width::to_u64;
use raddle_world::{Mark, Value};

/// Who does operations: a context, by its creation path.
pub type Client = Arc<[u32]>;

/// What is done, and with what.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Call {
    pub name: String,
    pub arguments: Vec<Value>,
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub client: Client,
    pub call: Call,
    pub results: Vec<Value>,
    /// When it began, counted in marks of the run.
    pub begun: usize,
    /// When it was over; none if it never was.
    pub ended: Option<usize>,
    pub effort: Effort,
}

/// Between which steps an operation was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effort {
    pub from: u64,
    pub to: u64,
    /// Whether these are the steps of everybody: a client without code lets others work.
    pub is_shared: bool,
}

impl Effort {
    pub fn steps(self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

impl Operation {
    /// Whether it says itself that it failed.
    pub fn is_error(&self) -> bool {
        self.results.iter().any(Value::is_error)
    }

    /// Whether it was over before another began.
    pub fn is_before(&self, other: &Self) -> bool {
        self.ended.is_some_and(|ended| ended < other.begun)
    }

    /// `put(1, one)`.
    pub fn asked(&self) -> String {
        let arguments: Vec<String> = self.call.arguments.iter().map(Value::to_string).collect();
        if arguments.is_empty() && self.call.name.contains([' ', '(']) {
            // A request of a client is a whole sentence, a system call has its arguments in it.
            return self.call.name.clone();
        }
        format!("{}({})", self.call.name, arguments.join(", "))
    }

    /// What it gave.
    pub fn given(&self) -> String {
        let results: Vec<String> = self.results.iter().map(Value::to_string).collect();
        match (self.ended, results.is_empty()) {
            (None, _) => "no end".to_owned(),
            (Some(_), true) => "nothing".to_owned(),
            (Some(_), false) => results.join(", "),
        }
    }
}

/// What a run did: operations in the order in which they began, and what its probes saw afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History {
    pub operations: Vec<Operation>,
    pub probes: Vec<Operation>,
    /// Probes that began while an operation was not over.
    pub early_probes: u64,
    /// Operations that began inside another one of the same client.
    pub nested: u64,
}

impl History {
    pub fn of(marks: &[Marked]) -> Self {
        let mut history = Self::default();
        // Each client's unfinished operation, and whether it is a probe.
        let mut open: BTreeMap<Client, (usize, bool)> = BTreeMap::new();
        for (at, marked) in marks.iter().enumerate() {
            let client = &marked.context;
            match &marked.mark {
                Mark::Begin { name, is_probe } => {
                    history.nested += u64::from(open.contains_key(client));
                    let is_early = *is_probe && open.values().any(|(_, is_probe)| !is_probe);
                    history.early_probes += u64::from(is_early);
                    let list = history.list(*is_probe);
                    list.push(Operation {
                        client: Arc::clone(client),
                        call: Call {
                            name: name.clone(),
                            arguments: Vec::new(),
                        },
                        results: Vec::new(),
                        begun: at,
                        ended: None,
                        effort: Effort {
                            from: marked.shared_steps.unwrap_or(marked.steps),
                            to: u64::MAX,
                            is_shared: marked.shared_steps.is_some(),
                        },
                    });
                    let index = list.len() - 1;
                    open.insert(Arc::clone(client), (index, *is_probe));
                }
                Mark::Argument(value) => {
                    if let Some((index, is_probe)) = open.get(client) {
                        let operation = &mut history.list(*is_probe)[*index];
                        operation.call.arguments.push(value.clone());
                    }
                }
                Mark::Result(value) => {
                    if let Some((index, is_probe)) = open.get(client) {
                        history.list(*is_probe)[*index].results.push(value.clone());
                    }
                }
                Mark::End => {
                    if let Some((index, is_probe)) = open.remove(client) {
                        let operation = &mut history.list(is_probe)[index];
                        operation.ended = Some(at);
                        operation.effort.to = marked.shared_steps.unwrap_or(marked.steps);
                    }
                }
            }
        }
        history
    }

    fn list(&mut self, is_probe: bool) -> &mut Vec<Operation> {
        if is_probe {
            &mut self.probes
        } else {
            &mut self.operations
        }
    }

    /// The clients, in the order of their paths.
    pub fn clients(&self) -> Vec<Client> {
        let mut clients: Vec<Client> = self.operations.iter().map(|o| o.client.clone()).collect();
        clients.sort();
        clients.dedup();
        clients
    }

    /// Equal for runs that one serial order explains if it explains the other.
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        for operation in self.operations.iter().chain(&self.probes) {
            // When it was over matters only as far as others began before or after that.
            let began = self
                .operations
                .iter()
                .filter(|other| operation.is_before(other));
            digest.word(to_u64(began.count()));
            let words = (&operation.client, &operation.call, &operation.results);
            digest.bytes(format!("{words:?}{}", operation.ended.is_some()).as_bytes());
        }
        digest.value()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn begin(client: u32, name: &str) -> Marked {
        let name = name.to_owned();
        let is_probe = false;
        marked(client, Mark::Begin { name, is_probe })
    }

    pub(crate) fn end(client: u32, result: i64) -> [Marked; 2] {
        let result = Mark::Result(Value::Number(result));
        [marked(client, result), marked(client, Mark::End)]
    }

    pub(crate) fn probe(result: i64) -> Vec<Marked> {
        let name = "probe".to_owned();
        let is_probe = true;
        let begin = marked(9, Mark::Begin { name, is_probe });
        [vec![begin], end(9, result).to_vec()].concat()
    }

    fn marked(client: u32, mark: Mark) -> Marked {
        Marked {
            context: Arc::from([client]),
            steps: 0,
            shared_steps: None,
            mark,
        }
    }

    #[test]
    fn operations_overlap_or_come_one_after_the_other() {
        let marks = [
            vec![begin(1, "a"), begin(2, "b")],
            end(2, 7).to_vec(),
            vec![begin(2, "c")],
            end(1, 8).to_vec(),
            end(2, 9).to_vec(),
            probe(3),
        ];
        let history = History::of(&marks.concat());
        let [a, b, c] = &history.operations[..] else {
            panic!("three operations")
        };
        assert!(b.is_before(c) && !a.is_before(c) && !a.is_before(b));
        assert_eq!((a.asked(), a.given()), ("a()".into(), "8".into()));
        assert_eq!(history.probes[0].given(), "3");
        assert_eq!(history.clients().len(), 2);
        assert_eq!((history.early_probes, history.nested), (0, 0));
    }

    #[test]
    fn marks_in_the_wrong_place_are_counted() {
        let history = History::of(&[vec![begin(1, "a"), begin(1, "b")], probe(1)].concat());
        assert_eq!((history.early_probes, history.nested), (1, 1));
        assert_eq!(history.operations[1].given(), "no end");
    }

    #[test]
    fn runs_that_differ_only_in_when_are_the_same() {
        let early = [
            vec![begin(1, "a")],
            end(1, 1).to_vec(),
            vec![begin(2, "b")],
            end(2, 2).to_vec(),
        ];
        let overlapping = [
            vec![begin(1, "a"), begin(2, "b")],
            end(1, 1).to_vec(),
            end(2, 2).to_vec(),
        ];
        let other = [
            vec![begin(1, "a"), begin(2, "b")],
            end(2, 2).to_vec(),
            end(1, 1).to_vec(),
        ];
        let digest = |marks: [Vec<Marked>; 4]| History::of(&marks.concat()).digest();
        let [overlapping, other] =
            [overlapping, other].map(|marks| History::of(&marks.concat()).digest());
        assert_ne!(digest(early), overlapping);
        assert_eq!(overlapping, other);
    }
}
