//! placeholder
pub(crate) fn run(_words: &[&str]) -> crate::shell::Result<()> {
    Err("not yet".into())
}
