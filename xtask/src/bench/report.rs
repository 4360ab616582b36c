//! The kept results as a page of tables, which the README takes its numbers from.

use std::fmt::Write as _;

use serde_json::Value;

use super::measurement::Measurement;
use super::pairs::{Outcome, median, median_rate, range};

/// The page: what was measured where, then a table of comparisons, then single figures.
pub(super) fn page(machine: &Value, outcomes: &[Outcome], figures: &[Figure]) -> String {
    let text = |key: &str| machine[key].as_str().unwrap_or("unknown").to_owned();
    let mut page = format!(
        "# Local speed and memory\n\n\
         Measured {} by `cargo xtask bench local` on {} cores of {} (Linux {}), commit {}. Every party gets the same files \
         and as many cores as threads, in a process of its own, with the files in the page cache; parties take turns. A ratio \
         is the median of the pairs against the fastest rival of that row, with the smallest and largest pair.\n\n\
         {}\n\n",
        text("date"),
        machine["cores"],
        text("processor"),
        text("kernel"),
        text("commit"),
        text("versions"),
    );
    page.push_str("| what | threads | farhaul | rivals | ratio to the fastest | mark |\n|---|---|---|---|---|---|\n");
    for outcome in outcomes {
        page.push_str(&row(outcome));
    }
    page.push_str("\nIn brackets: processor time a sample, of all processes of that loader.\n\n");
    page.push_str("| figure | measured | mark |\n|---|---|---|\n");
    for figure in figures {
        let _ = writeln!(
            page,
            "| {} | {} | {} |",
            figure.name,
            figure.measured,
            verdict(&figure.mark, figure.met)
        );
    }
    page
}

/// A single number with its mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Figure {
    pub(super) name: String,
    pub(super) measured: String,
    pub(super) mark: String,
    pub(super) met: bool,
}

fn row(outcome: &Outcome) -> String {
    let ratios = outcome.ratios(outcome.fastest());
    let (low, high) = range(&ratios);
    let rivals: Vec<String> = outcome
        .rivals
        .iter()
        .map(|runs| format!("{} {}", who(runs), rate(runs)))
        .collect();
    let mark = outcome.mark.map_or_else(
        || "–".to_owned(),
        |mark| verdict(&format!("≥{mark}×"), outcome.is_met()),
    );
    format!(
        "| {} | {} | {} | {} | **{:.2}×** ({low:.2}–{high:.2}) | {mark} |\n",
        outcome.name,
        outcome.threads,
        rate(&outcome.ours),
        rivals.join("; "),
        median(&ratios),
    )
}

fn who(runs: &[Measurement]) -> &str {
    runs.first().map_or("nobody", |run| run.who.as_str())
}

fn rate(runs: &[Measurement]) -> String {
    let cpu = median(&runs.iter().map(|run| run.cpu_ms).collect::<Vec<_>>());
    format!("{:.0}/s ({cpu:.2} ms)", median_rate(runs))
}

fn verdict(mark: &str, met: bool) -> String {
    if met {
        format!("{mark} met")
    } else {
        format!("{mark} **missed**")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::pairs::tests::outcome;
    use super::*;

    #[test]
    fn a_row_names_everyone_and_says_whether_the_mark_is_met() {
        let met = row(&outcome(Some(1.5)));
        assert!(
            met.starts_with("| decoding | 2 | 300/s (1.00 ms) | slow 50/s (1.00 ms); fast 150/s"),
            "{met}"
        );
        assert!(met.contains("**2.00×** (1.25–2.20) | ≥1.5× met"), "{met}");
        assert!(row(&outcome(Some(9.0))).contains("missed"));
    }

    #[test]
    fn the_page_holds_the_machine_the_rows_and_the_figures() {
        let machine = json!({"date": "2026-01-02", "cores": 2, "processor": "P", "kernel": "6", "commit": "abc", "versions": "v"});
        let figure = Figure {
            name: "first batch".into(),
            measured: "0.1 s".into(),
            mark: "≤0.3 s".into(),
            met: true,
        };
        let page = page(&machine, &[outcome(None)], &[figure]);
        assert!(
            page.contains("Measured 2026-01-02 by `cargo xtask bench local` on 2 cores of P"),
            "{page}"
        );
        assert!(
            page.contains("| first batch | 0.1 s | ≤0.3 s met |"),
            "{page}"
        );
        assert!(page.contains("| decoding | 2 |"), "{page}");
    }
}
