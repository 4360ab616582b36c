//! Interleaved runs, and what their ratios say.

use serde_json::{Value, json};

use super::measurement::{Measurement, Party};
use crate::shell::Result;

/// Ours against others, on the same files with the same cores.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    /// What is read and how, for a person.
    pub(super) name: &'static str,
    /// Cores and threads of every party.
    pub(super) threads: u8,
    /// The ratio to the fastest rival that is aimed at; none where it is only reported.
    pub(super) mark: Option<f64>,
    pub(super) ours: Party,
    pub(super) rivals: Vec<Party>,
}

/// What the rounds of one comparison showed.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) name: &'static str,
    pub(super) threads: u8,
    pub(super) mark: Option<f64>,
    pub(super) ours: Vec<Measurement>,
    pub(super) rivals: Vec<Vec<Measurement>>,
}

impl Comparison {
    /// Runs every party `pairs` times, in turn, every other round backwards: what changes with time meets all alike.
    pub(super) fn run(&self, pairs: usize) -> Result<Outcome> {
        let parties: Vec<&Party> = std::iter::once(&self.ours).chain(&self.rivals).collect();
        let mut runs: Vec<Vec<Measurement>> = vec![Vec::new(); parties.len()];
        for round in 0..pairs {
            let forwards = round % 2 == 0;
            for step in 0..parties.len() {
                let index = if forwards {
                    step
                } else {
                    parties.len() - 1 - step
                };
                let measured = parties[index].measure()?;
                println!(
                    "  round {}: {:<28} {:8.0}/s",
                    round + 1,
                    measured.who,
                    measured.rate
                );
                runs[index].push(measured);
            }
        }
        let rivals = runs.split_off(1);
        let ours = runs.remove(0);
        Ok(Outcome {
            name: self.name,
            threads: self.threads,
            mark: self.mark,
            ours,
            rivals,
        })
    }
}

impl Outcome {
    /// The rival with the highest median rate.
    pub(super) fn fastest(&self) -> &[Measurement] {
        let faster = |a: &&Vec<Measurement>, b: &&Vec<Measurement>| {
            median_rate(a).total_cmp(&median_rate(b))
        };
        self.rivals
            .iter()
            .max_by(faster)
            .expect("a comparison has a rival")
    }

    /// Our rate divided by that rival's, round by round.
    pub(super) fn ratios(&self, rival: &[Measurement]) -> Vec<f64> {
        self.ours
            .iter()
            .zip(rival)
            .map(|(ours, theirs)| ours.rate / theirs.rate)
            .collect()
    }

    /// Whether the mark is reached by the median of the pairs; true where there is none.
    pub(super) fn is_met(&self) -> bool {
        self.mark
            .is_none_or(|mark| median(&self.ratios(self.fastest())) >= mark)
    }

    /// As it is kept.
    pub(super) fn record(&self) -> Value {
        let party = |runs: &[Measurement]| {
            json!({
                "who": runs.first().map(|run| run.who.as_str()),
                "runs": runs.iter().map(Measurement::record).collect::<Vec<_>>(),
                "median_rate": median_rate(runs),
            })
        };
        let ratios = self.ratios(self.fastest());
        let (low, high) = range(&ratios);
        json!({
            "name": self.name,
            "threads": self.threads,
            "mark": self.mark,
            "ours": party(&self.ours),
            "rivals": self.rivals.iter().map(|runs| party(runs)).collect::<Vec<_>>(),
            "fastest_rival": self.fastest().first().map(|run| run.who.as_str()),
            "ratio_median": median(&ratios),
            "ratio_low": low,
            "ratio_high": high,
            "met": self.is_met(),
        })
    }
}

/// The rate in the middle of a party's runs.
pub(super) fn median_rate(runs: &[Measurement]) -> f64 {
    median(&runs.iter().map(|run| run.rate).collect::<Vec<_>>())
}

/// The middle value, the mean of the two middle ones where they are even in number; 0 of nothing.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[count / 2],
        count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}

/// The smallest and the largest value. Of five independent pairs, they hold the true median between them in 15 of 16 cases.
pub(super) fn range(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(*value), high.max(*value))
        })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A measurement with this name and rate.
    pub(in crate::bench) fn measured(who: &str, rate: f64) -> Measurement {
        Measurement {
            who: who.to_owned(),
            rate,
            cpu_ms: 1.0,
            peak_bytes: 1e6,
            load_before: 0.0,
        }
    }

    /// A comparison of one of ours with two rivals over three rounds.
    pub(in crate::bench) fn outcome(mark: Option<f64>) -> Outcome {
        Outcome {
            name: "decoding",
            threads: 2,
            mark,
            ours: [300.0, 330.0, 200.0]
                .map(|rate| measured("farhaul", rate))
                .to_vec(),
            rivals: vec![
                [100.0, 50.0, 50.0]
                    .map(|rate| measured("slow", rate))
                    .to_vec(),
                [150.0, 150.0, 160.0]
                    .map(|rate| measured("fast", rate))
                    .to_vec(),
            ],
        }
    }

    #[test]
    fn the_middle_of_values_is_found_in_any_order() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
        assert!(median(&[]).abs() < 1e-12);
        assert_eq!(range(&[3.0, 1.0, 2.0]), (1.0, 3.0));
    }

    #[test]
    fn the_fastest_rival_counts_and_pairs_are_divided_round_by_round() {
        let outcome = outcome(Some(1.5));
        assert_eq!(outcome.fastest()[0].who, "fast");
        assert_eq!(outcome.ratios(outcome.fastest()), [2.0, 2.2, 1.25]);
        assert!(outcome.is_met());
    }

    #[test]
    fn a_mark_above_the_median_ratio_is_missed() {
        assert!(!outcome(Some(2.1)).is_met());
        assert!(outcome(None).is_met());
    }
}
