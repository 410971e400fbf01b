; Highlighting rules.

(comment) @comment
((comment) @keyword.directive (#match? @keyword.directive "^// *allow W[0-9]+( *, *W[0-9]+)* *(:|$)"))
(doc_comment) @comment.documentation
(number) @number
(boolean) @constant.builtin
(text) @string
(block_text) @string
(html) @string
(block_html) @string
(route_path) @string.special
(escape) @string.escape
(interpolation ["{" "}"] @punctuation.special)
(path_parameter ["{" "}"] @punctuation.special)
(path_parameter (identifier) @variable.parameter)

(type_identifier) @type
(type_parameter) @type
(variant name: (type_identifier) @constructor)
(function_item name: (identifier) @function)
(service_item name: (identifier) @namespace)
(used_module (identifier) @namespace)
(parameter name: (identifier) @variable.parameter)
(argument name: (identifier) @variable.parameter)
(closure_parameter (identifier) @variable.parameter)
(field_declaration name: (identifier) @property)
(field_value name: (identifier) @property)
(call_expression function: (identifier) @function)
(call_expression function: (field_expression name: (identifier) @function))
(field_expression name: (identifier) @property)

[
  "as" "atomic" "before" "config" "const" "constraint" "secret" "else" "enum" "expect" "fn" "fold" "for" "if" "in" "let" "library" "loop" "match" "on" "failure" "of"
  "table" "key" "auto" "index" "unique" "references" "cascade" "default" "soft" "existing" "migrate" "batched" "order" "by" "desc" "limit" "after"
  "per" "pub" "race" "read" "record" "retry" "return" "service" "session" "shared" "test" "type" "until" "at" "end" "most" "use" "with" "within"
  "get" "post" "put" "delete" "patch" "head" "options" "body" "form" "header" "cookie" "unprefixed_cookie" "encrypted_cookie"
] @keyword

["=" "=>" "->" "|>" "||" "&&" "==" "!=" "<" "<=" ">" ">=" "+" "-" "*" "/" "%" "!" "?" "|" ".." "..="] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ":" ";" "."] @punctuation.delimiter
