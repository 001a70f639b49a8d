# As Mustache's own documentation begins: the text of the template and the data.
TEMPLATE = "{{#products}}{{#cheap}}<b>{{title}}</b>{{/cheap}}{{^cheap}}<h2>{{title}}</h2>" \
           "{{#variants}}<i>{{name}} {{{price}}}</i>{{/variants}}{{/cheap}}{{/products}}"

def render_page(data) = Mustache.render(TEMPLATE, data)
