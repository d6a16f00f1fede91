//! Reports: the model's numbers under the names of the JSON contract, and tables made of them.

pub mod build;
pub mod schema;
