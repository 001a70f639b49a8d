# The application of before/notes.rb without the exits that doc/guide/web-app.md finds in it: escape()
# assigns to no block parameter.
require_relative "../before/notes"

class Notes
  private

  def escape(text, &given)
    replacement = given || ENTITIES.method(:[])
    html = +""
    from = at = 0
    size = text.bytesize
    while at < size
      if SPECIAL[text.getbyte(at)]
        html << text.byteslice(from, at - from) << replacement.call(text.byteslice(at, 1))
        from = at + 1
      end
      at += 1
    end
    html << text.byteslice(from, size - from)
  end
end
