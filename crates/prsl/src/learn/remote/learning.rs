//! Learning from rows that are elsewhere.

use std::cell::OnceCell;
use std::ops::ControlFlow;

use super::super::data::Data;
use super::super::learner::{Calibrating, Learned, Learner, Progress};
use super::super::problem::Problem;
use super::super::sheet::hash_limit;
use super::{Remote, RemoteRows, Survey};
use crate::error::{Error, Result};
use crate::model::Model;

impl Learner {
    /// Like [`Self::learn_observed`], from rows that are elsewhere. If they have the same keys as the rows of
    /// [`Examples::by_keys`](crate::learn::Examples::by_keys), the model has the same bits. Returns an error for [`Calibrating::Alone`].
    pub fn learn_remote(
        &self,
        base: &Model,
        mut rows: Box<dyn RemoteRows>,
        progress: Progress,
        observe: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Learned> {
        self.check()?;
        if let Calibrating::Alone(_) = self.calibrate {
            let problem =
                "calibrators of their own take all rows on one machine; calibrate jointly, or not at all";
            return Err(Error::Examples { problem: problem.to_owned() });
        }
        let survey = Survey::ask(&base.without_calibrators(), &mut *rows)?;
        let sampled = OnceCell::new();
        let problem = || {
            let prepared = survey.cautious(base)?;
            let (fitted, free_rules, limits) = self.parts(&prepared, &survey);
            let remote = Remote::new(rows, &prepared, &fitted, &free_rules, limits, survey.chunks.clone());
            let totals = remote.totals()?;
            let sample = remote.sample(&prepared, hash_limit(totals.n_rows), self.seed)?;
            let data = Data::new(&prepared, &sample, &fitted)?;
            let _ = sampled.set(sample);
            Problem::of_sample(&prepared, data, free_rules, limits, (remote, totals))
        };
        let sample = |_: &Problem| sampled.get().expect("the problem was made").clone();
        self.run(base, &survey, progress, observe, problem, sample)
    }
}
