//! The clauses of the `Store` contract.

mod answers;
mod describes;
mod endures;
mod tampered;

pub use self::{answers::*, describes::*, endures::*, tampered::*};

/// Makes a test of each clause of the [`Store`](loader_core::Store) contract.
///
/// The last argument is a closure that makes a store of the [`DataSet`](crate::samples::DataSet) that it is given: it returns a
/// future of the store itself, or of a [`Subject`](crate::harness::Subject) where a folder or a server must live as long. A
/// [`Form`](crate::samples::Form) before it says what the store can hold.
#[macro_export]
macro_rules! store_suite {
    ($make:expr $(,)?) => {
        $crate::store_suite!($crate::samples::Form::Any, $make);
    };
    ($form:expr, $make:expr $(,)?) => {
        $crate::clauses!(
            store_suite,
            $crate::harness::Stores::new($form, $make),
            [
                every_target_is_answered_once_with_its_sample,
                rows_come_in_any_order_and_as_often_as_they_are_asked_for,
                an_empty_request_has_no_answers,
                keys_fetch_the_same_samples_as_rows,
                an_unknown_row_fails_alone_with_a_typed_error,
                an_unknown_key_fails_alone_with_a_typed_error,
                rows_of_another_data_set_are_incompatible,
                parts_are_chosen_by_name_without_case,
                a_deadline_in_the_past_is_a_timeout_for_every_target,
                a_deadline_far_ahead_changes_nothing,
                every_lane_can_be_asked_for_and_avoided,
                the_capability_makes_sense,
                the_summary_is_that_of_the_samples,
                the_catalog_has_every_row_in_path_order,
                a_recorded_checksum_is_that_of_the_payload,
                keys_lists_every_row_once,
                metadata_covers_every_row_once,
                an_empty_data_set_is_no_error,
                one_sample_is_a_data_set,
                nothing_printed_has_credentials,
                two_hundred_fetches_at_once_are_all_answered,
                a_dropped_stream_leaks_nothing,
                a_thousand_samples_come_through_as_the_capability_advises,
            ]
        );
    };
}

/// Makes a test of each clause about payloads that were broken behind the store's back.
///
/// The closure is that of [`store_suite!`](crate::store_suite!), but its [`Subject`](crate::harness::Subject) must say
/// [how to break a payload](crate::harness::Subject::with_tamper).
#[macro_export]
macro_rules! damage_suite {
    ($make:expr $(,)?) => {
        $crate::damage_suite!($crate::samples::Form::Any, $make);
    };
    ($form:expr, $make:expr $(,)?) => {
        $crate::clauses!(
            store_suite,
            $crate::harness::Stores::new($form, $make),
            [
                a_payload_that_is_gone_is_vanished_and_the_others_come,
                a_payload_that_changed_is_corrupt_and_the_others_come,
            ]
        );
    };
}
