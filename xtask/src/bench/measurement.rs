//! One run of one party in a process of its own.

use serde_json::{Value, json};

use crate::places;
use crate::shell::{Result, Run};

/// A loader to be measured: a script of `bench/peers` and its arguments.
#[derive(Clone, Debug)]
pub(super) struct Party {
    pub(super) script: &'static str,
    pub(super) arguments: Vec<String>,
}

/// What one run showed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measurement {
    /// What the loader calls itself.
    pub(super) who: String,
    /// Samples a second: all samples of the median epoch.
    pub(super) rate: f64,
    /// Processor time a sample over all epochs, of all its processes.
    pub(super) cpu_ms: f64,
    /// The largest anonymous and shared memory between two batches.
    pub(super) peak_bytes: f64,
    /// Runnable tasks of the machine just before, as `/proc/loadavg` averages them over a minute.
    pub(super) load_before: f64,
}

impl Party {
    /// Runs it once.
    pub(super) fn measure(&self) -> Result<Measurement> {
        let load_before = load();
        let output = Run::new(places::venv_program("python"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg(format!("bench/peers/{}.py", self.script))
            .args(&self.arguments)
            .read()?;
        let record = last_json(&output)
            .ok_or_else(|| format!("{} printed no JSON:\n{output}", self.script))?;
        parse(&record, load_before)
            .ok_or_else(|| format!("{} printed an odd record: {record}", self.script))
    }
}

impl Measurement {
    /// As it is kept.
    pub(super) fn record(&self) -> Value {
        json!({
            "rate": self.rate, "cpu_ms": self.cpu_ms, "peak_bytes": self.peak_bytes, "load_before": self.load_before,
        })
    }
}

/// The last line that is JSON: libraries print what they like before it.
pub(super) fn last_json(output: &str) -> Option<Value> {
    output.lines().rev().find_map(|line| {
        serde_json::from_str::<Value>(line)
            .ok()
            .filter(|value| !value.is_number())
    })
}

fn parse(record: &Value, load_before: f64) -> Option<Measurement> {
    let seconds: Vec<f64> = record["seconds"]
        .as_array()?
        .iter()
        .filter_map(Value::as_f64)
        .collect();
    let samples = record["samples"].as_f64()?;
    let epochs = f64::from(u32::try_from(seconds.len()).ok()?);
    if samples == 0.0 || seconds.is_empty() {
        return None;
    }
    Some(Measurement {
        who: record["who"].as_str()?.to_owned(),
        rate: samples / epochs / super::pairs::median(&seconds),
        cpu_ms: record["cpu_s"].as_f64()? * 1e3 / samples,
        peak_bytes: record["peak_bytes"].as_f64()?,
        load_before,
    })
}

fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_median_epoch() {
        let record = json!({"who": "a", "samples": 300, "seconds": [4.0, 1.0, 2.0], "cpu_s": 3.0, "peak_bytes": 7});
        let measured = parse(&record, 0.5).unwrap();
        assert!((measured.rate - 50.0).abs() < 1e-9);
        assert!((measured.cpu_ms - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_run_without_samples_is_no_measurement() {
        assert_eq!(
            parse(
                &json!({"who": "a", "samples": 0, "seconds": [1.0], "cpu_s": 0, "peak_bytes": 0}),
                0.0
            ),
            None
        );
        assert_eq!(parse(&json!({"who": "a"}), 0.0), None);
    }

    #[test]
    fn what_a_library_prints_before_the_record_is_passed_over() {
        assert_eq!(last_json("warning\n{\"a\": 1}\n").unwrap()["a"], 1);
        assert_eq!(last_json("17\n"), None);
    }
}
