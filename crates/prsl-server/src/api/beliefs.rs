//! Beliefs in JSON: `{"feet": "standing", "hands": {"high": 0.5}, "activity": null}`.

use std::fmt;

use prsl::Evidence;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use utoipa::openapi::schema::{AdditionalProperties, Array, Object, OneOf, Schema, SchemaType, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

/// The beliefs of one row by label. Labels that are absent are missing values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beliefs(pub(crate) Evidence);

/// What is known about one label.
enum Belief {
    /// Nothing.
    Missing,
    /// The category is observed.
    Observed(String),
    /// The probability of yes, for a yes/no label.
    Yes(f64),
    /// One probability for each category, in the model's order.
    List(Vec<Option<f64>>),
    /// Probabilities by category.
    Named(Vec<(String, Option<f64>)>),
}

impl<'de> Deserialize<'de> for Beliefs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LabelVisitor)
    }
}

struct LabelVisitor;

impl<'de> Visitor<'de> for LabelVisitor {
    type Value = Beliefs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of labels and what is known about them")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Beliefs, A::Error> {
        let mut evidence = Evidence::new();
        while let Some((label, belief)) = map.next_entry::<String, Belief>()? {
            evidence = match belief {
                // The library checks the name of a label that is missing, too.
                Belief::Missing => evidence.named_belief(label, [("", None); 0]),
                Belief::Observed(category) => evidence.observe(label, category),
                Belief::Yes(probability) => evidence.belief(label, [probability]),
                Belief::List(list) => evidence.partial_belief(label, list),
                Belief::Named(named) => evidence.named_belief(label, named),
            };
        }
        Ok(Beliefs(evidence))
    }
}

impl<'de> Deserialize<'de> for Belief {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BeliefVisitor)
    }
}

struct BeliefVisitor;

impl<'de> Visitor<'de> for BeliefVisitor {
    type Value = Belief;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a category that is observed, probabilities by category, a list of them, the probability of yes, or null",
        )
    }

    fn visit_unit<E>(self) -> Result<Belief, E> {
        Ok(Belief::Missing)
    }

    fn visit_str<E>(self, category: &str) -> Result<Belief, E> {
        Ok(Belief::Observed(category.to_owned()))
    }

    fn visit_f64<E>(self, probability: f64) -> Result<Belief, E> {
        Ok(Belief::Yes(probability))
    }

    fn visit_u64<E>(self, probability: u64) -> Result<Belief, E> {
        Ok(Belief::Yes(probability as f64))
    }

    fn visit_i64<E>(self, probability: i64) -> Result<Belief, E> {
        Ok(Belief::Yes(probability as f64))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Belief, A::Error> {
        let mut list = Vec::new();
        while let Some(probability) = sequence.next_element()? {
            list.push(probability);
        }
        Ok(Belief::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Belief, A::Error> {
        let mut named = Vec::new();
        while let Some(entry) = map.next_entry()? {
            named.push(entry);
        }
        Ok(Belief::Named(named))
    }
}

impl ToSchema for Beliefs {}

impl PartialSchema for Beliefs {
    fn schema() -> RefOr<Schema> {
        let number = || {
            let mut number = Object::with_type(SchemaType::Array(vec![Type::Number, Type::Null]));
            number.format = Some(SchemaFormat::KnownFormat(KnownFormat::Double));
            (number.minimum, number.maximum) = (Some(0.0.into()), Some(1.0.into()));
            number
        };
        let mut named = Object::with_type(Type::Object);
        named.description = Some("probabilities by category; missing ones share the rest".to_owned());
        named.additional_properties = Some(Box::new(AdditionalProperties::RefOr(RefOr::T(number().into()))));
        let mut observed = Object::with_type(Type::String);
        observed.description = Some("the observed category".to_owned());
        let mut yes = number();
        yes.description = Some("the probability of yes; null is missing".to_owned());
        let mut list = Array::new(number());
        list.description = Some("one probability for each category, in the model's order".to_owned());
        let belief = OneOf::builder().item(observed).item(named).item(list).item(yes).build();
        let mut beliefs = Object::with_type(Type::Object);
        beliefs.description =
            Some("what is known about one row, by label; absent labels take their prior".to_owned());
        beliefs.additional_properties = Some(Box::new(AdditionalProperties::RefOr(RefOr::T(belief.into()))));
        RefOr::T(beliefs.into())
    }
}
