//! Golden files of every section in every format. After a wanted change: `INSTA_UPDATE=always`.

use crate::sample::report;
use cil_trace_core::report::format::{Format, Rendering, html};
use cil_trace_core::report::sections::section_names;

#[test]
fn every_section_in_every_table_format() {
    let report = report();
    for format in [Format::Text, Format::Csv, Format::Markdown] {
        for section in section_names() {
            let text = Rendering::new(&[section], format)
                .unwrap()
                .render(&report)
                .unwrap();
            insta::assert_snapshot!(format!("{section}.{}", format.name()), text);
        }
    }
}

#[test]
fn the_overview() {
    let none: [&str; 0] = [];
    let rendering = Rendering::new(&none, Format::Text)
        .unwrap()
        .of_file("run 1.data");
    insta::assert_snapshot!("overview.text", rendering.render(&report()).unwrap());
}

#[test]
fn the_page() {
    insta::assert_snapshot!("page.html", html::page(&report(), None));
}
