//! How an ordinary run ended, in words and as an exit status.

use anyhow::bail;
use raddle_linux::{LinuxWorld, describe_status};
use raddle_sched::End;

use crate::exit::Code;
use crate::{interrupt, message};

/// Killed by it: the program wrote to an output whose reader is gone.
const SIGPIPE: i32 = 13;

/// Tells how a run ended that was allowed so many steps, and gives the status of its first process.
///
/// # Errors
/// It did not end by itself.
pub(in crate::commands) fn conclude(
    end: End,
    steps_max: u64,
    world: &mut LinuxWorld,
) -> anyhow::Result<Code> {
    match end {
        End::Exited { status } => {
            if status & 0x7F == 0 {
                return Ok(Code::Guest(u8::try_from(status >> 8 & 0xFF)?));
            }
            let signal = status & 0x7F;
            // A reader that has seen enough is no news, here as in a shell.
            if signal == SIGPIPE {
                return Ok(Code::Guest(u8::try_from(128 + signal)?));
            }
            let details = world
                .crash()
                .map_or_else(String::new, |text| format!("; {text}"));
            let status_text = describe_status(status);
            message::note(&format!("the program was {status_text}{details}"));
            Ok(Code::Guest(u8::try_from(128 + signal)?))
        }
        End::Stuck => bail!(
            "deadlock: no thread of the program can ever run again\n  {}",
            world.describe_stacks().join("\n  ")
        ),
        End::Unsupported(text) => bail!("the run cannot go on: {text}"),
        End::Hanging => bail!(
            "the program did not end within {steps_max} instructions; raise the limit with --max-instructions"
        ),
        End::Abandoned => {
            message::note(&format!(
                "interrupted; the threads of the program stood here\n  {}",
                world.describe_stacks().join("\n  ")
            ));
            Ok(Code::Guest(interrupt::STATUS))
        }
    }
}
