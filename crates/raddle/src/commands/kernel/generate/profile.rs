//! `raddle kernel generate --profile`: tests of two columns of calls that touch common memory of a kernel.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Parser;
use raddle_campaign::pairs::{Footprint, Profiler, rank};
use raddle_campaign::{Cancel, Options, Stage as _, Subject as _};
use raddle_kernel::campaign::{HABITS, KernelTest, Origin, Target};
use raddle_kernel::generate::FileSystem;
use raddle_kernel::generate::columns::{ColumnRecipe, call_names};
use raddle_kernel::symbols::Symbols;
use raddle_kernel::test_case::TestCase;
use raddle_report::words::counted;
use raddle_sched::Follow;
use raddle_stdx::width::{to_u64, to_usize};
use raddle_trace::Schedule;

use super::Generate;
use crate::commands::campaign::CampaignOptions;
use crate::commands::kernel::explore::{race_rules, start_failure};
use crate::commands::kernel::guest_options::GuestOptions;
use crate::commands::kernel::prepare::{ConsoleTo, Prepared, prepare};
use crate::exit::{Code, Failure};
use crate::keep;
use crate::message;

/// Nanoseconds of the guest's time in which a column must come to its end.
const TIME_MAX: u64 = 2_000_000_000;

/// For the defaults of all options of a guest and a campaign.
#[derive(Debug, Parser)]
struct Alone {
    #[command(flatten)]
    guest: GuestOptions,
    #[command(flatten)]
    campaign: CampaignOptions,
}

impl Generate {
    pub(super) fn run_profiled(&self, kernel: &Path, fs: FileSystem) -> Result<Code, Failure> {
        let recipe = ColumnRecipe {
            fs,
            seed: self.seed,
            calls: self.calls,
            only: self.only.clone(),
        };
        let known = call_names();
        if let Some(unknown) = self
            .only
            .iter()
            .find(|name| !known.contains(&name.as_str()))
        {
            return Err(anyhow!(
                "no column can be made of `{unknown}`: there are {}",
                known.join(", ")
            )
            .into());
        }
        let words = ["raddle", "--kernel"].map(OsString::from).into_iter();
        let words = words.chain([kernel.as_os_str().to_owned()]);
        let of_fs = shlex::split(fs.options()).unwrap_or_default();
        let words = words.chain(of_fs.into_iter().map(OsString::from));
        let Alone {
            mut guest,
            campaign,
        } = Alone::try_parse_from(words).map_err(|error| anyhow!(error))?;
        guest.cache.clone_from(&self.cache);
        let mut prepared = prepare(&guest, ConsoleTo::Nowhere)?;
        let symbols = Arc::new(std::mem::take(&mut prepared.symbols));
        // Columns with the same calls are one.
        let mut known = BTreeSet::new();
        let numbers: Vec<u64> = (0..self.columns)
            .filter(|number| known.insert(recipe.calls(*number)))
            .collect();
        let footprints = numbers
            .iter()
            .map(|number| footprint((&prepared, &symbols), &recipe.alone(*number), &campaign))
            .collect::<Result<Vec<Footprint>, Failure>>()?;
        let pairs = rank(&footprints);
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot make {}", self.folder.display()))?;
        let mut count = 0;
        for pair in pairs.iter().take(to_usize(self.count)) {
            let columns = [numbers[pair.first], numbers[pair.second]];
            let why = format!(
                "columns {} and {}, {} pairs of instructions touch common memory, {} of which no test before this one brings together",
                columns[0], columns[1], pair.all, pair.new
            );
            let path =
                self.folder
                    .join(format!("{}-{}-pair-{count:04}.ktest", fs.name(), self.seed));
            keep::write(&path, recipe.pair(&why, columns).as_bytes())
                .with_context(|| format!("cannot write {}", path.display()))?;
            count += 1;
        }
        message::note(&format!(
            "wrote {} to {}: {} of {} touch common memory in a new way; explore them with: raddle kernel explore --linearize --kernel {} {} {}",
            counted(count, "test"),
            self.folder.display(),
            counted(to_u64(pairs.len()), "pair"),
            counted(to_u64(numbers.len()), "column"),
            kernel.display(),
            fs.options(),
            self.folder.join("*.ktest").display()
        ));
        Ok(if pairs.is_empty() {
            Code::Vacuous
        } else {
            Code::Clean
        })
    }
}

/// What a column touches of the kernel when it is alone.
fn footprint(
    (prepared, symbols): (&Prepared, &Arc<Symbols>),
    text: &str,
    campaign: &CampaignOptions,
) -> Result<Footprint, Failure> {
    let no_module = &mut |name: &str| Err(format!("no module {name} is wanted"));
    let test = TestCase::parse("generated column", text, no_module)?;
    let target = Target {
        boot: Arc::clone(&prepared.boot),
        test: Some(test),
        symbols: Arc::clone(symbols),
        modules: prepared.modules.clone(),
        race_rules: race_rules(None)?,
        contexts: None,
        time_max: TIME_MAX,
        judge: None,
        origin: Origin {
            machine: prepared.inputs.clone(),
            modules: Vec::new(),
        },
    };
    let cancel = Cancel::default();
    let options = Options {
        races: false,
        ..campaign.campaign(&HABITS, &cancel)?
    };
    let test = KernelTest {
        interrupts: false,
        ..KernelTest::new(&target, options)
    };
    let mut session = test.start().map_err(start_failure)?;
    let mut profiler = Profiler::of_kernel();
    let schedule = Schedule::default();
    let rules = test.first_rules();
    session.observe(&mut Follow::new(&schedule), &rules, &mut [&mut profiler]);
    Ok(profiler.footprints.swap_remove(0))
}
