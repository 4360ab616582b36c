//! Names of parts, each kept once.

use std::collections::HashMap;

use loader_core::sample::media_type;

/// A name of a part and what it says.
#[derive(Debug)]
pub(crate) struct PartName {
    pub(crate) text: Box<str>,
    /// Equal for names that differ in case alone.
    pub(crate) folded: u32,
    pub(crate) is_image: bool,
    /// `cls`, or a longer name that ends in `.cls`.
    pub(crate) is_label: bool,
}

/// Numbered names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: Vec<PartName>,
    numbers: HashMap<Box<str>, u32>,
}

impl Names {
    /// The number of a name, a new one if need be.
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let lower = text.to_ascii_lowercase();
        let folded = if lower == text {
            None
        } else {
            Some(self.number(&lower))
        };
        let number = u32::try_from(self.names.len()).expect("names are fewer than parts");
        let is_label = lower.rsplit('.').next() == Some("cls");
        let is_image = media_type(text).starts_with("image/");
        self.names.push(PartName {
            text: text.into(),
            folded: folded.unwrap_or(number),
            is_image,
            is_label,
        });
        self.numbers.insert(text.into(), number);
        number
    }

    /// Forgets how to number: the names stay.
    pub(crate) fn seal(&mut self) {
        self.numbers = HashMap::new();
    }

    pub(crate) fn name(&self, number: usize) -> &PartName {
        &self.names[number]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PartName> {
        self.names.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_case_fold_to_one() {
        let mut names = Names::default();
        let (upper, lower, mixed) = (
            names.number("JPG"),
            names.number("jpg"),
            names.number("Jpg"),
        );
        let folded = |number: u32| names.name(number as usize).folded;
        assert_ne!(upper, lower);
        assert!(folded(upper) == folded(lower) && folded(mixed) == lower);
    }

    #[test]
    fn a_label_is_what_ends_in_cls() {
        let mut names = Names::default();
        for (name, is_label) in [
            ("cls", true),
            ("CLS", true),
            ("0 (clean).cls", true),
            ("xcls", false),
            ("cls.txt", false),
        ] {
            let number = names.number(name);
            assert_eq!(names.name(number as usize).is_label, is_label, "{name}");
        }
    }
}
