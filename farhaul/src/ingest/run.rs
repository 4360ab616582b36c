//! One ingest under way: groups that fill, groups that are being written, rows that will be published.

use std::{
    collections::{BTreeMap, HashSet},
    mem,
    sync::{Arc, mpsc},
};

use index::{Index, IndexBuilder};
use loader_core::{
    Error, ErrorKind, Manifest, NewSample, Result, Row, SampleKey, Source, Summary, store::Put,
};

use super::{FAILURES_LISTED, IngestOptions, IngestReport, OnBadSample, classes::Classes};
use crate::{
    destination::Destination,
    task::{Cancel, Progress},
};

/// Groups whose rows wait for those of an earlier one, at most.
const EARLY_GROUPS: usize = 64;

/// What became of a group: its number, its bytes, and the store's word.
type Answer = (u64, u64, Result<Vec<Put>>);

/// An ingest from its first sample to its last.
pub(super) struct Ingest<'a> {
    destination: &'a Destination,
    options: &'a IngestOptions,
    before: Option<Manifest>,
    rows: IndexBuilder,
    classes: Classes,
    seen: HashSet<SampleKey>,
    changed: bool,
    group: Vec<NewSample>,
    group_bytes: u64,
    group_samples: usize,
    groups_at_once: usize,
    groups_out: usize,
    groups_sent: u64,
    /// The group whose rows come next.
    next_group: u64,
    /// Rows of later groups by their number: in the source's order they need no sorting and no second copy at the end.
    early: BTreeMap<u64, Vec<Row>>,
    bytes_out: u64,
    sender: mpsc::Sender<Answer>,
    answers: mpsc::Receiver<Answer>,
}

impl<'a> Ingest<'a> {
    pub(super) fn begin(
        source: &dyn Source,
        destination: &'a Destination,
        options: &'a IngestOptions,
    ) -> Result<Self> {
        let before = destination.published()?;
        let mut rows = IndexBuilder::new();
        if let Some(manifest) = &before {
            for number in 0..manifest.catalog.len() {
                rows.push(&manifest.catalog.row(number));
            }
        }
        let frozen = before
            .as_ref()
            .map_or(&[][..], |manifest| &manifest.classes);
        let classes = Classes::merge(frozen, source.classes());
        let changed = before.is_none() || classes.names().len() > frozen.len();
        let capability = destination.writer().capability();
        let (sender, answers) = mpsc::channel();
        Ok(Self {
            destination,
            options,
            before,
            rows,
            classes,
            seen: HashSet::new(),
            changed,
            group: Vec::new(),
            group_bytes: 0,
            group_samples: capability.request_samples.max(1),
            groups_at_once: capability.requests_in_flight.max(1),
            groups_out: 0,
            groups_sent: 0,
            next_group: 0,
            early: BTreeMap::new(),
            bytes_out: 0,
            sender,
            answers,
        })
    }

    pub(super) fn pour(
        &mut self,
        source: &mut dyn Source,
        progress: &dyn Progress,
        cancel: &Cancel,
        report: &mut IngestReport,
    ) -> Result<()> {
        while let Some(next) = source.next_sample() {
            cancel.check()?;
            while let Ok(answer) = self.answers.try_recv() {
                self.answered(answer, progress, report)?;
            }
            match next.and_then(|sample| self.admit(sample)) {
                Ok(sample) => self.push(sample, progress, report)?,
                Err(error) if error.is_of_one_sample() => self.failed(error, report)?,
                Err(error) => return Err(error),
            }
        }
        self.send(progress, report)
    }

    /// Refuses a path that came before, and gives the sample the label that its class has in the data set.
    fn admit(&mut self, mut sample: NewSample) -> Result<NewSample> {
        if !self.seen.insert(SampleKey::of_content(&sample.path, 0)) {
            let error = Error::new(
                ErrorKind::Conflict,
                "two samples of the source have this path",
            );
            return Err(error.at(sample.path));
        }
        sample.label = self.classes.label(sample.label);
        Ok(sample)
    }

    fn push(
        &mut self,
        sample: NewSample,
        progress: &dyn Progress,
        report: &mut IngestReport,
    ) -> Result<()> {
        let nbytes = sample.payload.len() as u64;
        // Several groups share the budget, so that one is filled while others are written.
        let share = self.options.memory_bytes / (self.groups_at_once as u64 + 1).min(4);
        if !self.group.is_empty() && self.group_bytes + nbytes > share {
            self.send(progress, report)?;
        }
        self.group_bytes += nbytes;
        self.group.push(sample);
        if self.group.len() >= self.group_samples {
            self.send(progress, report)
        } else {
            Ok(())
        }
    }

    fn send(&mut self, progress: &dyn Progress, report: &mut IngestReport) -> Result<()> {
        if self.group.is_empty() {
            return Ok(());
        }
        let has_room = |run: &Self| {
            run.groups_out < run.groups_at_once
                && run.bytes_out + run.group_bytes <= run.options.memory_bytes
        };
        while self.groups_out > 0 && !has_room(self) {
            self.wait(progress, report)?;
        }
        let (group, nbytes) = (mem::take(&mut self.group), mem::take(&mut self.group_bytes));
        let number = self.groups_sent;
        self.groups_sent += 1;
        self.groups_out += 1;
        self.bytes_out += nbytes;
        let writer = Arc::clone(self.destination.writer());
        let farewell = Farewell {
            sender: self.sender.clone(),
            number,
            nbytes,
            answer: None,
        };
        self.destination.runtime().spawn(async move {
            let mut farewell = farewell;
            farewell.answer = Some(writer.put(group).await);
        });
        Ok(())
    }

    fn wait(&mut self, progress: &dyn Progress, report: &mut IngestReport) -> Result<()> {
        let answer = self.answers.recv().expect("this run holds a sender too");
        self.answered(answer, progress, report)
    }

    pub(super) fn drain(
        &mut self,
        progress: &dyn Progress,
        report: &mut IngestReport,
    ) -> Result<()> {
        let mut result = Ok(());
        while self.groups_out > 0 {
            let answered = self.wait(progress, report);
            result = result.and(answered);
        }
        self.keep_early(0);
        result
    }

    fn answered(
        &mut self,
        (number, nbytes, puts): Answer,
        progress: &dyn Progress,
        report: &mut IngestReport,
    ) -> Result<()> {
        self.groups_out -= 1;
        self.bytes_out -= nbytes;
        let puts = puts?;
        progress.advanced(puts.len() as u64, nbytes);
        let mut result = Ok(());
        let mut rows = Vec::with_capacity(puts.len());
        for put in puts {
            match put {
                Put::Written(row) => {
                    report.samples += 1;
                    report.bytes += row.nbytes;
                    rows.push(row);
                }
                Put::Present(row) => {
                    report.skipped += 1;
                    rows.push(row);
                }
                Put::Failed(error) => result = result.and(self.failed(error, report)),
            }
        }
        self.early.insert(number, rows);
        self.keep_early(EARLY_GROUPS);
        result
    }

    /// Keeps the rows whose turn it is, and no more than `most` groups of others for later.
    fn keep_early(&mut self, most: usize) {
        while let Some(first) = self.early.first_entry() {
            if *first.key() > self.next_group && self.early.len() <= most {
                return;
            }
            let (number, rows) = self.early.pop_first().expect("there is a first entry");
            self.next_group = self.next_group.max(number + 1);
            for row in rows {
                self.changed = self.changed || !self.is_published(&row);
                self.rows.push(&row);
            }
        }
    }

    fn is_published(&self, row: &Row) -> bool {
        let Some(Manifest { catalog, .. }) = &self.before else {
            return false;
        };
        catalog
            .find(&row.path)
            .is_some_and(|number| catalog.row(number) == *row)
    }

    fn failed(&self, error: Error, report: &mut IngestReport) -> Result<()> {
        report.failed += 1;
        if report.failures.len() < FAILURES_LISTED {
            report.failures.push(error.clone());
        }
        match self.options.on_error {
            OnBadSample::Skip => Ok(()),
            OnBadSample::Fail => {
                Err(error.hint("nothing was published; leave bad samples out with --on-error skip"))
            }
        }
    }

    pub(super) fn publish(self) -> Result<Summary> {
        let Self {
            destination,
            before,
            rows,
            classes,
            seen,
            changed,
            ..
        } = self;
        if let Some(manifest) = before.as_ref().filter(|_| !changed) {
            return Ok(manifest.summary());
        }
        // What is not needed goes first, and the store takes the lasting form as it is instead of making one of its own.
        drop((seen, before));
        let snapshot = rows.finish(classes.names()).to_bytes()?;
        let index = Index::from_bytes(snapshot)?;
        destination.publish(Manifest {
            classes: index.classes(),
            catalog: Arc::new(index),
        })
    }
}

/// Tells what became of a group even where its task broke down.
struct Farewell {
    sender: mpsc::Sender<Answer>,
    number: u64,
    nbytes: u64,
    answer: Option<Result<Vec<Put>>>,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        let broken = || {
            Err(Error::new(
                ErrorKind::Internal,
                "writing broke down before it had an answer",
            ))
        };
        // An ingest that has ended waits for nothing.
        let _ = self.sender.send((
            self.number,
            self.nbytes,
            self.answer.take().unwrap_or_else(broken),
        ));
    }
}
