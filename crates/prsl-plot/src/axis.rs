//! Axes: positions of values, and labeled ticks.

/// A linear axis: a range of values and their positions in the figure.
#[derive(Clone, Copy)]
pub(crate) struct Axis {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Axis {
    /// From `values` to `positions`, in pixels.
    pub(crate) fn new(values: (f64, f64), positions: (f64, f64)) -> Self {
        Self { from: values.0, to: values.1, start: positions.0, end: positions.1 }
    }

    /// The axis that covers these values with a margin; from 0 to 1 if there are none.
    pub(crate) fn covering(values: impl Iterator<Item = f64>, positions: (f64, f64)) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let (low, high) = finite
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        // A single value needs a margin too, larger than rounding errors.
        let room = ((high - low) * 0.04).max(high.abs().max(low.abs()) * 1e-6).max(1e-9);
        Self::new((low - room, high + room), positions)
    }

    /// The position of a value, clipped to the ends of the axis.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        self.start + share * (self.end - self.start)
    }

    /// About this many ticks at multiples of 1, 2 or 5 times a power of ten, with their labels.
    pub(crate) fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        let step = round_step((self.to - self.from) / about as f64);
        let (first, last) = ((self.from / step).ceil() as i64, (self.to / step).floor() as i64);
        let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let tick = |index: i64| (index as f64 * step, format!("{:.decimals$}", index as f64 * step));
        (first..=last).take(10 * about).map(tick).collect()
    }
}

/// The largest of 1, 2 and 5 times a power of ten that is not above `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let round = [5.0, 2.0, 1.0].map(|digit| digit * power);
    round.into_iter().find(|&round| round <= step * (1.0 + 1e-9)).unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis, about: usize) -> String {
        axis.ticks(about).into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(names(&Axis::new((0.0, 1.0), (0.0, 1.0)), 5), "0.0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(names(&Axis::new((-7.0, 130.0), (0.0, 1.0)), 4), "0 20 40 60 80 100 120");
        assert_eq!(names(&Axis::new((-2.31, -2.28), (0.0, 1.0)), 3), "-2.31 -2.30 -2.29 -2.28");
    }

    #[test]
    fn any_values_make_an_axis() {
        for values in [
            vec![],
            vec![3.0],
            vec![0.0],
            vec![1e12],
            vec![f64::NAN, f64::NEG_INFINITY, 2.0],
            vec![-1e-9, 1e9],
        ] {
            let axis = Axis::covering(values.iter().copied(), (100.0, 0.0));
            assert!(
                values
                    .iter()
                    .filter(|value| value.is_finite())
                    .all(|&value| (0.0..=100.0).contains(&axis.at(value)))
            );
            assert!(axis.ticks(5).len() <= 50);
        }
        let axis = Axis::covering([1.0, 2.0].into_iter(), (100.0, 0.0));
        assert!(axis.at(2.0) < axis.at(1.0));
    }
}
