//! A run held beside the serial orders of its operations: what each order gives, and what deviates from the nearest one.

use serde::{Deserialize, Serialize};

/// What serial orders say about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SerialOrders {
    pub effect: Effect,
    /// Whether all operations of the clients went well, so that only a later request shows the damage; nothing if it is
    /// not known where a run that broke off had come to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_latent: Option<bool>,
    /// The serial orders that agree with which operations were over before others began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<SerialOrder>,
    /// Whether there are too many orders to list them.
    #[serde(default)]
    pub has_more_orders: bool,
    /// The order that `differences` compares with: `A1 B1 A2`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub nearest: String,
    /// Operations in the order in which they began, then what was asked for the state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Compared>,
}

/// How a deviation shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    Crash,
    Deadlock,
    Hang,
    /// An operation reports an error.
    Error,
    /// An operation gives a wrong result.
    Semantic,
    /// An operation takes many times as long.
    Performance,
}

/// One serial order; whether it gives what the run gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SerialOrder {
    /// `A1 B1 A2`, or `A B` if each client does one thing.
    pub order: String,
    /// Whether all results are the same; nothing if the order does not come to its end.
    pub same_results: Option<bool>,
    /// Whether the state is the same; nothing if the order does not come to its end.
    pub same_state: Option<bool>,
}

/// An operation, or a question for the state, as the run and the nearest serial order have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Compared {
    /// The client, `A`; nothing for questions for the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// What was asked: `put(1, one)`.
    pub operation: String,
    pub seen: String,
    /// What the serial order gives; nothing if the operation does not come to its end there.
    pub expected: Option<String>,
    /// Whether both count as the same, under the rules of the test.
    pub is_same: bool,
}

impl SerialOrders {
    /// A run that broke off before its results could be compared.
    pub fn broken_off(effect: Effect, is_latent: Option<bool>) -> Self {
        Self {
            effect,
            is_latent,
            orders: Vec::new(),
            has_more_orders: false,
            nearest: String::new(),
            differences: Vec::new(),
        }
    }

    /// The table and the differences, a line each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.orders.iter().map(SerialOrder::line).collect();
        if self.has_more_orders {
            lines.push("there are too many serial orders to list them".to_owned());
        }
        if !self.differences.is_empty() {
            lines.push(format!(
                "seen (+, = for the same) beside the nearest serial order {} (-):",
                self.nearest
            ));
        }
        lines.extend(self.differences.iter().flat_map(Compared::lines));
        lines
    }
}

impl SerialOrder {
    fn line(&self) -> String {
        let word = |fits: Option<bool>| match fits {
            Some(true) => "yes",
            Some(false) => "no",
            None => "it does not come to its end",
        };
        format!(
            "serial order {}: same results: {}, same state: {}",
            self.order,
            word(self.same_results),
            word(self.same_state)
        )
    }
}

impl Compared {
    fn lines(&self) -> Vec<String> {
        let client = self.client.as_ref();
        let who = client.map_or_else(String::new, |client| format!("{client}: "));
        let line = |sign: &str, given: &str| format!("{sign} {who}{} = {given}", self.operation);
        match &self.expected {
            _ if self.is_same => vec![line("=", &self.seen)],
            Some(expected) => vec![line("-", expected), line("+", &self.seen)],
            None => vec![
                format!("- {who}{} does not come to its end", self.operation),
                line("+", &self.seen),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_differences_are_lines() {
        let compared = |client: Option<&str>, seen: &str, expected: Option<&str>| Compared {
            client: client.map(str::to_owned),
            operation: "get(1)".into(),
            seen: seen.into(),
            expected: expected.map(str::to_owned),
            is_same: expected == Some(seen),
        };
        let orders = SerialOrders {
            orders: vec![SerialOrder {
                order: "A B".into(),
                same_results: Some(true),
                same_state: None,
            }],
            has_more_orders: true,
            nearest: "A B".into(),
            differences: vec![
                compared(Some("A"), "1", Some("1")),
                compared(Some("B"), "1", None),
                compared(None, "1", Some("2")),
            ],
            ..SerialOrders::broken_off(Effect::Semantic, Some(false))
        };
        assert_eq!(
            orders.lines(),
            [
                "serial order A B: same results: yes, same state: it does not come to its end",
                "there are too many serial orders to list them",
                "seen (+, = for the same) beside the nearest serial order A B (-):",
                "= A: get(1) = 1",
                "- B: get(1) does not come to its end",
                "+ B: get(1) = 1",
                "- get(1) = 2",
                "+ get(1) = 1",
            ]
        );
    }
}
