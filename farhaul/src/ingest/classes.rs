//! Classes of a data set and of a source, brought together by name.

use std::collections::HashMap;

/// The class names of the data set after an ingest, and the label that each of the source's labels becomes.
#[derive(Debug)]
pub(super) struct Classes {
    names: Vec<String>,
    /// By the source's label.
    labels: Vec<i64>,
}

impl Classes {
    /// Keeps the frozen names where they are and puts new ones behind them, in the source's order.
    pub(super) fn merge(frozen: &[String], of_source: Vec<String>) -> Self {
        let mut names = frozen.to_vec();
        let mut label_of: HashMap<String, usize> = HashMap::new();
        for (label, name) in frozen.iter().enumerate() {
            label_of.entry(name.clone()).or_insert(label);
        }
        let mut labels = Vec::with_capacity(of_source.len());
        for name in of_source {
            let label = *label_of.entry(name).or_insert_with_key(|name| {
                names.push(name.clone());
                names.len() - 1
            });
            labels.push(i64::try_from(label).expect("no memory holds 2^63 names"));
        }
        Self { names, labels }
    }

    /// The names by label.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// A label of the source as the data set's. One that names no class (a number in a tar's `.cls`, none) stays.
    pub(super) fn label(&self, label: i64) -> i64 {
        let known = usize::try_from(label)
            .ok()
            .and_then(|label| self.labels.get(label));
        known.copied().unwrap_or(label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn classes_keep_their_labels_and_new_ones_follow() {
        let classes = Classes::merge(&names(&["dog", "cat"]), names(&["ant", "cat", "dog"]));
        assert_eq!(classes.names(), names(&["dog", "cat", "ant"]));
        assert_eq!([0, 1, 2].map(|label| classes.label(label)), [2, 1, 0]);
    }

    #[test]
    fn labels_that_name_no_class_stay() {
        let classes = Classes::merge(&names(&["dog"]), vec![]);
        assert_eq!([-1, 0, 7].map(|label| classes.label(label)), [-1, 0, 7]);
    }
}
