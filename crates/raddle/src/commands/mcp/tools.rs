//! What an assistant is told about the tools.

use raddle_mcp::ToolText;

pub(super) const INSTRUCTIONS: &str = "raddle finds concurrency bugs in unmodified x86-64 Linux programs by running them in a deterministic machine and choosing the interleaving. \
Call `explore` (or `predict`) on a program that was compiled with -g; read `story` of a recording that it gives; `open` the recording to step through the failing run in both directions, read variables and ask who wrote a value last. \
`run_without` shows which context switches the failure needs. Nothing on this machine is changed.";

/// The tools, in the order in which they are used.
pub(super) const TOOLS: &[ToolText] = &[
    ToolText {
        name: "explore",
        description: "Run a program under many interleavings and report the failures, each with a recording that replays it. Takes up to `seconds`.",
        arguments: r#"{"type":"object","properties":{"program":{"type":"string","description":"path of the executable"},"arguments":{"type":"array","items":{"type":"string"}},"schedules":{"type":"integer","minimum":1,"description":"interleavings at most; default 2000"},"seconds":{"type":"integer","minimum":1,"maximum":300,"description":"default 20"},"races":{"type":"boolean","description":"look for data races, too"}},"required":["program"],"additionalProperties":false}"#,
    },
    ToolText {
        name: "predict",
        description: "Predict from correct runs of a program what other interleavings could do wrong, force it, and report what is confirmed. Takes up to `seconds`.",
        arguments: r#"{"type":"object","properties":{"program":{"type":"string","description":"path of the executable"},"arguments":{"type":"array","items":{"type":"string"}},"seconds":{"type":"integer","minimum":1,"maximum":300,"description":"default 20"}},"required":["program"],"additionalProperties":false}"#,
    },
    ToolText {
        name: "findings",
        description: "List what explore and predict have found in this conversation, with the recordings.",
        arguments: r#"{"type":"object","properties":{},"additionalProperties":false}"#,
    },
    ToolText {
        name: "story",
        description: "Replay a recording and tell the failure as a story: who did what in which order, with source lines, values and locks.",
        arguments: r#"{"type":"object","properties":{"recording":{"type":"string"}},"required":["recording"],"additionalProperties":false}"#,
    },
    ToolText {
        name: "run_without",
        description: "Run the schedule of a recording with one of its deviations (context switches that the default order would not make) removed, and say whether it still fails. Without `deviation`, list the deviations.",
        arguments: r#"{"type":"object","properties":{"recording":{"type":"string"},"deviation":{"type":"integer","minimum":1}},"required":["recording"],"additionalProperties":false}"#,
    },
    ToolText {
        name: "open",
        description: "Open a recording to be looked into; closes the one before. The run stands at its end, where it fails, or at its beginning.",
        arguments: r#"{"type":"object","properties":{"recording":{"type":"string"},"at":{"enum":["begin","end"],"description":"default end"}},"required":["recording"],"additionalProperties":false}"#,
    },
    ToolText {
        name: "where",
        description: "Threads of the open recording at this moment, and the stack of one of them (default: the one that runs).",
        arguments: r#"{"type":"object","properties":{"thread":{"type":"integer","minimum":1}},"additionalProperties":false}"#,
    },
    ToolText {
        name: "step",
        description: "Move the open recording: a line of a thread (next, in, out, back, call: back to where its function was called), one instruction (instruction, instruction-back), or to the next stop (continue, reverse-continue), which is a breakpoint FILE:LINE or FUNCTION given in `until`, a write to the expression in `until_written`, or the end of the run.",
        arguments: r#"{"type":"object","properties":{"how":{"enum":["next","in","out","back","call","instruction","instruction-back","continue","reverse-continue"]},"thread":{"type":"integer","minimum":1},"until":{"type":"string"},"until_written":{"type":"string"},"condition":{"type":"string","description":"an expression that must hold at `until`"}},"required":["how"],"additionalProperties":false}"#,
    },
    ToolText {
        name: "variables",
        description: "Arguments and local variables of a frame of a thread of the open recording (default: the innermost of the one that runs).",
        arguments: r#"{"type":"object","properties":{"thread":{"type":"integer","minimum":1},"frame":{"type":"integer","minimum":0}},"additionalProperties":false}"#,
    },
    ToolText {
        name: "evaluate",
        description: "The value of an expression for a frame: names of variables, . -> [] * & arithmetic and comparisons.",
        arguments: r#"{"type":"object","properties":{"expression":{"type":"string"},"thread":{"type":"integer","minimum":1},"frame":{"type":"integer","minimum":0}},"required":["expression"],"additionalProperties":false}"#,
    },
    ToolText {
        name: "memory",
        description: "Bytes of memory at an address or at what an expression stands for, at most 256.",
        arguments: r#"{"type":"object","properties":{"at":{"type":"string","description":"0x... or an expression"},"count":{"type":"integer","minimum":1,"maximum":256}},"required":["at"],"additionalProperties":false}"#,
    },
    ToolText {
        name: "who_wrote",
        description: "Which thread wrote what an expression stands for last before this moment: where, the value before and after, and the stack.",
        arguments: r#"{"type":"object","properties":{"expression":{"type":"string"},"thread":{"type":"integer","minimum":1},"frame":{"type":"integer","minimum":0}},"required":["expression"],"additionalProperties":false}"#,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_an_object_of_json() {
        for tool in TOOLS {
            let schema: serde_json::Value = serde_json::from_str(tool.arguments).unwrap();
            assert_eq!(schema["type"], "object", "{}", tool.name);
        }
    }
}
