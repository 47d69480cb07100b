//! Tensors of the Open Inference Protocol, in JSON and binary.

use std::fmt;

use axum::http::StatusCode;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::Problem;

/// A request for inference.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct InferRequest {
    /// An id that the answer repeats.
    pub(crate) id: Option<String>,
    /// One tensor for each label that is known.
    pub(crate) inputs: Vec<InputTensor>,
    /// The outputs that are wanted; all of them unless it is given.
    pub(crate) outputs: Option<Vec<OutputRequest>>,
    /// Parameters of the whole request.
    #[serde(default)]
    pub(crate) parameters: Parameters,
}

/// An input: the beliefs about one label.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct InputTensor {
    /// The label.
    pub(crate) name: String,
    /// Rows and categories.
    pub(crate) shape: Vec<u64>,
    /// `FP64` or `FP32`.
    pub(crate) datatype: String,
    /// Parameters of the tensor.
    #[serde(default)]
    pub(crate) parameters: Parameters,
    /// The numbers, row by row; null is missing. Absent if the tensor is binary.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Option<f64>>>)]
    pub(crate) data: Option<Numbers>,
}

/// An output that is wanted.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct OutputRequest {
    /// `marginal.LABEL`, `mpe`, `log_evidence`, `status` or `engine`.
    pub(crate) name: String,
    /// Parameters of the tensor.
    #[serde(default)]
    pub(crate) parameters: Parameters,
}

/// Parameters of the extension for binary tensors. Others are ignored, as the protocol wants it.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct Parameters {
    /// Bytes of this input after the JSON.
    pub(crate) binary_data_size: Option<usize>,
    /// Whether this output is wanted in binary.
    pub(crate) binary_data: Option<bool>,
    /// Whether all outputs are wanted in binary.
    pub(crate) binary_data_output: Option<bool>,
}

/// The answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InferResponse {
    /// The model.
    pub(crate) model_name: String,
    /// The version that answered.
    pub(crate) model_version: String,
    /// The id of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// The outputs.
    pub(crate) outputs: Vec<OutputTensor>,
}

/// An output.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OutputTensor {
    /// Its name.
    pub(crate) name: String,
    /// Its shape.
    pub(crate) shape: Vec<usize>,
    /// `FP64` or `BYTES`.
    pub(crate) datatype: &'static str,
    /// Where the data is, if it is binary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parameters: Option<OutputParameters>,
    /// The data, row by row, unless it is binary. Numbers of impossible rows are null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<OutputData>,
}

/// Parameters of a binary output.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OutputParameters {
    /// Bytes of this output after the JSON.
    pub(crate) binary_data_size: usize,
}

/// The data of an output.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum OutputData {
    /// `FP64`; NaN is written as null.
    Numbers(Vec<f64>),
    /// `BYTES`.
    Texts(Vec<String>),
}

impl OutputData {
    /// The name of the data type.
    pub(crate) fn datatype(&self) -> &'static str {
        match self {
            OutputData::Numbers(_) => "FP64",
            OutputData::Texts(_) => "BYTES",
        }
    }

    /// The data as the extension writes it: little-endian numbers, and texts after their length of four bytes.
    pub(crate) fn write_binary(&self, out: &mut Vec<u8>) {
        match self {
            OutputData::Numbers(numbers) => numbers.iter().for_each(|x| out.extend(x.to_le_bytes())),
            OutputData::Texts(texts) => texts.iter().for_each(|text| {
                out.extend((text.len() as u32).to_le_bytes());
                out.extend(text.as_bytes());
            }),
        }
    }
}

/// Numbers in JSON, flat or as one list for each row; null is NaN.
#[derive(Debug, Default)]
pub(crate) struct Numbers(pub(crate) Vec<f64>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut numbers = Numbers::default();
        deserializer.deserialize_seq(Lists { numbers: &mut numbers.0, depth: 0 })?;
        Ok(numbers)
    }
}

/// Appends the numbers of a list, and of lists in it.
struct Lists<'a> {
    numbers: &'a mut Vec<f64>,
    depth: usize,
}

impl<'de> Visitor<'de> for Lists<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, null, or a list of them")
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.numbers.push(number);
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.numbers.push(number as f64);
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.numbers.push(number as f64);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.numbers.push(f64::NAN);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if self.depth == 2 {
            return Err(A::Error::custom("data nests deeper than rows and categories"));
        }
        while list.next_element_seed(Lists { numbers: self.numbers, depth: self.depth + 1 })?.is_some() {}
        Ok(())
    }
}

impl<'de> serde::de::DeserializeSeed<'de> for Lists<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl InputTensor {
    /// Takes the numbers of the tensor: from JSON, or the next bytes of `binary`. NaN is missing.
    pub(crate) fn take_numbers(&mut self, binary: &mut &[u8]) -> Result<Vec<f64>, Problem> {
        let Some(size) = self.parameters.binary_data_size else {
            let numbers = self.data.take().map(|Numbers(numbers)| numbers);
            return numbers.ok_or_else(|| self.wrong("has neither `data` nor `binary_data_size`"));
        };
        let Some((bytes, rest)) = binary.split_at_checked(size) else {
            return Err(
                self.wrong(&format!("has {size} bytes after the JSON, and only {} are left", binary.len()))
            );
        };
        *binary = rest;
        let width = if self.datatype == "FP32" { 4 } else { 8 };
        if bytes.len() % width != 0 {
            return Err(self.wrong(&format!("has {size} bytes, no multiple of {width}")));
        }
        Ok(match width {
            4 => bytes.chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]).into()).collect(),
            _ => {
                let number = |x: &[u8]| f64::from_le_bytes(x.try_into().expect("chunks have eight bytes"));
                bytes.chunks_exact(8).map(number).collect()
            }
        })
    }

    /// A problem with this tensor.
    pub(crate) fn wrong(&self, what: &str) -> Problem {
        let name: String = self.name.chars().take(100).collect();
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "Tensor", format!("input `{name}` {what}"))
    }
}
