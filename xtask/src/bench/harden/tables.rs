//! Sums over the report of a build, for the tables of the paper.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

/// What a report adds up to.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// By kind: sites found, sites hardened.
    pub(super) sites: BTreeMap<String, (u32, u32)>,
    /// Sites left alone, by reason.
    pub(super) left: BTreeMap<String, u32>,
    pub(super) points: u32,
    pub(super) lock_points: u32,
    pub(super) pads: u32,
}

impl Sums {
    pub(super) fn of(report: &Path) -> anyhow::Result<Self> {
        let mut sums = Self::default();
        let text = fs::read_to_string(report)?;
        for line in text.lines() {
            let line: Value = serde_json::from_str(line)?;
            if let Some(site) = line.get("site") {
                sums.add_site(site)?;
            }
            if let Some(module) = line.get("module") {
                sums.points += number(module, "points")?;
                sums.lock_points += number(module, "lock_points")?;
                sums.pads += number(module, "pads")?;
            }
        }
        Ok(sums)
    }

    fn add_site(&mut self, site: &Value) -> anyhow::Result<()> {
        let kind = site["kind"].as_str().context("a site without a kind")?;
        let (found, hardened) = self.sites.entry(kind.to_owned()).or_default();
        *found += 1;
        match site["outcome"]["pruned"].as_str() {
            Some(reason) => *self.left.entry(reason.to_owned()).or_default() += 1,
            None => *hardened += 1,
        }
        Ok(())
    }

    pub(super) fn hardened(&self) -> u32 {
        self.sites.values().map(|(_, hardened)| hardened).sum()
    }

    /// Cells of table 5.4: hardened of found, for each kind.
    pub(super) fn cells(&self) -> String {
        ["assertion", "output", "oracle", "dereference", "deadlock"]
            .map(|kind| {
                let (found, hardened) = self.sites.get(kind).copied().unwrap_or_default();
                format!("{hardened} of {found}")
            })
            .join(" | ")
    }
}

/// The first hardened site of a report that has a line, as fix mode names it.
pub(super) fn first_hardened(report: &Path) -> anyhow::Result<String> {
    for line in fs::read_to_string(report)?.lines() {
        let line: Value = serde_json::from_str(line)?;
        let site = &line["site"];
        if let (Some(file), Some(number)) = (site["file"].as_str(), site["line"].as_u64())
            && number > 0
            && site["outcome"]["pruned"].is_null()
        {
            return Ok(format!("{file}:{number}"));
        }
    }
    anyhow::bail!("{} has no hardened site", report.display())
}

fn number(module: &Value, name: &str) -> anyhow::Result<u32> {
    let value = module[name]
        .as_u64()
        .with_context(|| format!("no {name} in the report"))?;
    Ok(u32::try_from(value)?)
}

/// Which share of `without` is gone in `with`, as table 5.6 writes it.
pub(super) fn share_gone(with: f64, without: f64) -> String {
    if without == 0.0 {
        return "N/A".into();
    }
    format!("{:.1}%", (without - with) / without * 100.0)
}

/// The middle of a sample, and where the middle of the whole population lies in 95 of 100 samples.
#[derive(Debug, PartialEq)]
pub(super) struct Median {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The median of sorted values. The interval rests on ranks alone (the sign test), so that outliers of a busy machine do
/// not widen it.
pub(super) fn median(sorted: &[f64]) -> Option<Median> {
    let count = sorted.len();
    let margin = rank_margin(count);
    let (below, above) = (sorted.get(count.checked_sub(1)? / 2)?, sorted[count / 2]);
    Some(Median {
        value: f64::midpoint(*below, above),
        low: sorted[margin],
        high: sorted[count - 1 - margin],
    })
}

/// How many values may be cut off at each end of the sample so that its span still holds the median with 95 %: of
/// `count` fair coins, as many or fewer show heads in 2.5 % of all throws.
fn rank_margin(count: usize) -> usize {
    let coins = i32::try_from(count).unwrap_or(i32::MAX);
    let mut chance = 0.5_f64.powi(coins);
    let mut below = 0.0;
    for heads in 0..coins {
        below += chance;
        if below > 0.025 {
            return usize::try_from(heads - 1).unwrap_or(0);
        }
        chance *= f64::from(coins - heads) / f64::from(heads + 1);
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_median_is_that_of_the_sign_test() {
        // Tables of the sign test: with 31 values, those of rank 10 and 22; with 6, the ends.
        let values: Vec<f64> = (1..=31).map(f64::from).collect();
        let expected = Median {
            value: 16.0,
            low: 10.0,
            high: 22.0,
        };
        assert_eq!(median(&values), Some(expected));
        assert_eq!(rank_margin(6), 0);
        let even = median(&[1.0, 2.0, 4.0, 8.0]).map(|median| median.value);
        assert_eq!(even, Some(3.0));
        assert_eq!(median(&[]), None);
    }
}
