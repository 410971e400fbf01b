//! Doc comments as HTML: paragraphs, headings, lists, code blocks (fenced or indented), and inline code. Other Markdown
//! stays as it is written.

use super::page::escape;

/// The block that a line belongs to.
#[derive(Clone, Copy, PartialEq)]
enum MarkdownBlock {
    None,
    Paragraph,
    List,
    Heading,
    /// Code between fences.
    Fenced,
    /// Code that is indented by four columns.
    Indented,
}

/// Converts a doc comment to HTML.
pub(super) fn html(markdown: &str) -> String {
    let mut out = String::new();
    let mut open = MarkdownBlock::None;
    let mut blank_lines = 0;
    for line in markdown.lines() {
        let text = line.trim();
        let next = block_of(line, open);
        if next == MarkdownBlock::Indented && text.is_empty() {
            // The lines are part of the block only if more code follows.
            blank_lines += 1;
            continue;
        }
        if next != open {
            out.push_str(closing(open));
            out.push_str(opening(next));
            (open, blank_lines) = (next, 0);
        }
        match next {
            MarkdownBlock::Fenced if is_fence(text) => {}
            MarkdownBlock::Fenced => out.push_str(&(escape(line) + "\n")),
            MarkdownBlock::Indented => {
                out.push_str(&"\n".repeat(std::mem::take(&mut blank_lines)));
                out.push_str(&(escape(unindented(line).unwrap_or(line)) + "\n"));
            }
            MarkdownBlock::List => match list_item(text) {
                Some(item) => out.push_str(&format!("<li>{}\n", inline(item))),
                None => out.push_str(&(inline(text) + "\n")),
            },
            MarkdownBlock::Heading => out.push_str(&inline(text.trim_start_matches('#').trim_start())),
            MarkdownBlock::Paragraph => out.push_str(&(inline(text) + "\n")),
            MarkdownBlock::None => {}
        }
    }
    out + closing(open)
}

/// Returns the block that a line belongs to, after a line of the block `open`.
fn block_of(line: &str, open: MarkdownBlock) -> MarkdownBlock {
    match (open, line.trim()) {
        (MarkdownBlock::Fenced, text) if is_fence(text) => MarkdownBlock::None,
        (MarkdownBlock::Fenced, _) => MarkdownBlock::Fenced,
        (_, text) if is_fence(text) => MarkdownBlock::Fenced,
        (MarkdownBlock::Indented, "") => MarkdownBlock::Indented,
        (_, "") => MarkdownBlock::None,
        // In a list, an indented line continues the item.
        (MarkdownBlock::None | MarkdownBlock::Paragraph | MarkdownBlock::Heading | MarkdownBlock::Indented, _)
            if unindented(line).is_some() =>
        {
            MarkdownBlock::Indented
        }
        (_, text) if text.starts_with('#') => MarkdownBlock::Heading,
        (_, text) if list_item(text).is_some() => MarkdownBlock::List,
        (MarkdownBlock::List, _) => MarkdownBlock::List,
        _ => MarkdownBlock::Paragraph,
    }
}

fn is_fence(text: &str) -> bool {
    text.starts_with("```")
}

/// Returns an indented line without its indentation.
fn unindented(line: &str) -> Option<&str> {
    line.strip_prefix("    ").or_else(|| line.strip_prefix('\t'))
}

/// Returns the text of a list item without its marker.
fn list_item(text: &str) -> Option<&str> {
    text.strip_prefix("* ").or_else(|| text.strip_prefix("- "))
}

fn opening(block: MarkdownBlock) -> &'static str {
    match block {
        MarkdownBlock::None => "",
        MarkdownBlock::Paragraph => "<p>",
        MarkdownBlock::List => "<ul>",
        MarkdownBlock::Heading => "<h4>",
        MarkdownBlock::Fenced | MarkdownBlock::Indented => "<pre>",
    }
}

fn closing(block: MarkdownBlock) -> &'static str {
    match block {
        MarkdownBlock::None => "",
        MarkdownBlock::Paragraph => "</p>\n",
        MarkdownBlock::List => "</ul>\n",
        MarkdownBlock::Heading => "</h4>\n",
        MarkdownBlock::Fenced | MarkdownBlock::Indented => "</pre>\n",
    }
}

/// Converts the text of a line; text in backquotes becomes code, and the brackets of Rust links are dropped.
fn inline(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(index, part)| match index % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    });
    parts.collect::<String>().replace("[<code>", "<code>").replace("</code>]", "</code>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indented_and_fenced_code_keeps_its_lines() {
        assert_eq!(
            html("A guestbook.\n\n    weir run guests\n    curl <url>\n\n      -d x\n\nIt is small."),
            "<p>A guestbook.\n</p>\n<pre>weir run guests\ncurl &lt;url&gt;\n\n  -d x\n</pre>\n<p>It is small.\n</p>\n"
        );
        assert_eq!(
            html("Run it:\n    weir run\n    weir test"),
            "<p>Run it:\n</p>\n<pre>weir run\nweir test\n</pre>\n"
        );
        assert_eq!(html("```sh\nweir run\n\n  weir test\n```"), "<pre>weir run\n\n  weir test\n</pre>\n");
    }

    #[test]
    fn an_indented_line_continues_a_list_item() {
        assert_eq!(html("* one\n    and more\n* two"), "<ul><li>one\nand more\n<li>two\n</ul>\n");
    }
}
