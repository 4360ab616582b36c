//! `cargo xtask bench`: measurements whose results are kept in `bench/results`.

mod local;
mod measurement;
mod pairs;
mod report;

use crate::shell::Result;

/// What a person may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    /// Times that every party of a comparison runs.
    pairs: usize,
    /// A fraction of the files, to see that everything runs; the results are not kept.
    quick: bool,
    /// Only comparisons whose name holds this.
    only: Option<String>,
}

pub(crate) fn run(words: &[&str]) -> Result<()> {
    match words {
        ["local", options @ ..] => local::run(&asked(options)?),
        _ => Err("usage: cargo xtask bench local [--quick] [--pairs N] [--only WORDS]".into()),
    }
}

fn asked(options: &[&str]) -> Result<Asked> {
    let mut asked = Asked {
        pairs: 5,
        quick: false,
        only: None,
    };
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut value = || {
            options
                .next()
                .ok_or_else(|| format!("{option} needs a value"))
        };
        match *option {
            "--quick" => (asked.quick, asked.pairs) = (true, 2),
            "--pairs" => {
                asked.pairs = value()?
                    .parse()
                    .map_err(|error| format!("--pairs: {error}"))?;
            }
            "--only" => asked.only = Some((*value()?).to_owned()),
            other => return Err(format!("bench local does not know `{other}`")),
        }
    }
    if asked.pairs == 0 {
        return Err("--pairs 0 measures nothing".into());
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_unknown_ones_refused() {
        let all = asked(&["--pairs", "7", "--only", "raw"]).unwrap();
        assert_eq!(
            all,
            Asked {
                pairs: 7,
                quick: false,
                only: Some("raw".into())
            }
        );
        assert!(asked(&["--quick"]).unwrap().quick);
        assert!(asked(&["--pairs"]).unwrap_err().contains("needs a value"));
        assert!(asked(&["--pairs", "0"]).is_err());
        assert!(asked(&["--fast"]).is_err());
    }
}
