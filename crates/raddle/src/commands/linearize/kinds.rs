//! The kinds of findings with their explanations.

use crate::commands::kind::Kind;

/// What each kind of finding means.
pub(crate) const KINDS: [Kind; 4] = [
    (
        "not-linearizable",
        "operations give results together that they give in no serial order",
        "Run one after the other, in any order that agrees with which operations were over before others began, the operations never give these results. The table shows which serial orders give the same results and which the same state; the lines below it the nearest order. Look for what one operation does in several steps that another one can come between.",
    ),
    (
        "unexpected-error",
        "an operation reports an error that it reports in no serial order",
        "The operation notices that something is wrong and says so; run one after the other in any order it never does. Usually it relies on something that it looked up a moment ago.",
    ),
    (
        "latent-error",
        "all results are right, but the state left behind is not",
        "The results are those of a serial order, but the probes, asked afterwards, give what they give after no serial order with these results. Nobody has noticed yet: a stale entry in a cache, a log in the wrong order, a count that is off. The probe that differs is a request that makes it visible.",
    ),
    (
        "slow-operation",
        "an operation takes many times the steps that it takes in any serial order",
        "All results are right, but what one operation costs depends on who comes in between: it tries again and again, waits in a loop, or does work that another one has thrown away. Reported only if the test or its rules say by `slower-than` how many times its slowest serial run is too much.",
    ),
];
