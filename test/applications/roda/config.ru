require "json"
require "roda"
require "sequel"

# Books and their reviews, in memory: Puma's threads share the one connection of Sequel's pool.
DB = Sequel.sqlite
DB.create_table(:books) { primary_key :id; String :title, null: false; Integer :year }
DB.create_table(:reviews) { primary_key :id; foreign_key :book_id, :books; Integer :stars; String :body }
Sequel::Model.plugin :validation_helpers
Sequel::Model.plugin :json_serializer

class Book < Sequel::Model
  one_to_many :reviews
  dataset_module { def since(year) = where { Sequel[:year] >= year }.order(:year, :id) }
  def validate
    super
    validates_presence :title
    validates_integer :year
  end
end

class Review < Sequel::Model
  many_to_one :book
  def before_save = super.tap { self.stars = stars.clamp(1, 5) }
end

class Library < Roda
  plugin :render, engine: "erb"
  plugin :json, classes: [Array, Hash, Sequel::Model]
  plugin :all_verbs
  plugin :halt
  plugin :symbol_matchers
  plugin :streaming
  plugin(:not_found) { "no such page" }
  plugin(:error_handler) { |error| error.message.lines.first }
  symbol_matcher :year, /(\d{4})/, &:to_i

  route do |r|
    r.root { render(inline: <<~'ERB', locals: { books: Book.order(:id).eager(:reviews).all }) }
      <% books.each do |book| %>
      <p><%= ERB::Util.h(book.title) %>: <%= book.reviews.sum(&:stars) %></p>
      <% end %>
    ERB
    r.get("since", :year) { |year| Book.since(year).map { |book| book.values.slice(:id, :title) } }
    r.get("stream") { stream { |out| Book.order(:id).paged_each { |book| out << book.title << "\n" } } }
    r.get("broken") { raise ArgumentError, "broken on purpose" }
    r.on "books" do
      r.post true do
        book = DB.transaction { Book.create(title: r.params["title"], year: r.params["year"].to_i) }
        response.status = 201
        book.values
      end
      r.on Integer do |id|
        book = Book.with_pk(id) or r.halt(404, "no such book")
        r.get(true) { book.values.merge(reviews: book.reviews_dataset.order(:id).select_map(:body)) }
        r.post("reviews") { book.add_review(stars: r.params["stars"].to_i, body: r.params["body"]).values.except(:id) }
        r.delete(true) { DB.transaction { book.remove_all_reviews; book.delete; raise Sequel::Rollback }; {} }
      end
    end
  end
end

run Library.freeze.app
