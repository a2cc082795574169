#pragma once

namespace palimpsest {

/// The page that explains a plan, with `@TITLE@` and `@DATA@` in place of its title and its data.
/// `@DATA@` is JSON, as `write_page` makes it.
extern const char* const page_template;

}  // namespace palimpsest
