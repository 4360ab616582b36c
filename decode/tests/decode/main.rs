//! What `decode` promises, on real and odd pictures.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod support;
