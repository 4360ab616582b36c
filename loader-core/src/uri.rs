//! Store URIs.
