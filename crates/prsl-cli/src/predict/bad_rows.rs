//! The lines of rows that are not valid, among those of the answers.

use prsl_data::{BadRow, Column};

use crate::table::Answers;

/// The status of a row that is not valid.
pub const INVALID: &str = "invalid";

/// Some consecutive rows of the table, those that are not valid included.
pub struct Places {
    /// The number of the first row in the table, counted from 1.
    pub first_row: u64,
    /// For each row, what is wrong with it, if anything.
    pub problems: Vec<Option<String>>,
}

impl Places {
    /// `n_rows` rows, some of which are not valid.
    pub fn new(first_row: u64, n_rows: usize, bad_rows: &[BadRow]) -> Places {
        let mut problems = vec![None; n_rows];
        bad_rows.iter().for_each(|bad| problems[bad.place()] = Some(bad.problem()));
        Places { first_row, problems }
    }

    /// The positions of the valid rows.
    pub fn valid(&self) -> Vec<usize> {
        (0..self.problems.len()).filter(|&place| self.problems[place].is_none()).collect()
    }

    /// The number of a row in the table, counted from 1.
    pub fn number(&self, place: usize) -> u64 {
        self.first_row + place as u64
    }
}

/// The lines of the output: the position of each line's row, and its line among the answers, if the row is valid.
pub struct Lines {
    list: Vec<(usize, Option<usize>)>,
}

impl Lines {
    /// The lines of the answers to valid rows. With `marks`, each row that is not valid has a line, too.
    pub fn new(places: &Places, answers: &Answers, marks: bool) -> Lines {
        let valid = places.valid();
        let mut list = Vec::with_capacity(answers.rows.len());
        let mut answered = answers.rows.iter().enumerate().peekable();
        for (place, problem) in places.problems.iter().enumerate() {
            while let Some((line, _)) = answered.next_if(|(_, row)| valid[**row] == place) {
                list.push((place, Some(line)));
            }
            if problem.is_some() && marks {
                list.push((place, None));
            }
        }
        Lines { list }
    }

    /// The position of each line's row.
    pub fn places(&self) -> Vec<usize> {
        self.list.iter().map(|(place, _)| *place).collect()
    }

    /// A column of the answers, with missing values in the lines of other rows.
    pub fn spread(&self, column: Column) -> Column {
        if self.list.iter().all(|(_, line)| line.is_some()) {
            return column; // the lines are those of the answers
        }
        let lines = || self.list.iter().map(|(_, line)| *line);
        match column {
            Column::Number(values) => Column::Number(lines().map(|line| values[line?]).collect()),
            Column::Integer(values) => Column::Integer(lines().map(|line| values[line?]).collect()),
            Column::Text(values) => Column::Text(lines().map(|line| values[line?].clone()).collect()),
            Column::Boolean(values) => Column::Boolean(lines().map(|line| values[line?]).collect()),
        }
    }

    /// The column of statuses, in which rows that are not valid have their own.
    pub fn with_invalid(&self, status: Column) -> Column {
        let Column::Text(mut texts) = status else { return status };
        let lines = texts.iter_mut().zip(&self.list);
        lines.filter(|(_, (_, line))| line.is_none()).for_each(|(text, _)| *text = Some(INVALID.to_owned()));
        Column::Text(texts)
    }

    /// The column of problems.
    pub fn problems(&self, places: &Places) -> Column {
        Column::Text(self.list.iter().map(|(place, _)| places.problems[*place].clone()).collect())
    }
}
