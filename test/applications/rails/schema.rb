# Makes the database: ruby schema.rb
require_relative "config/environment"
ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define do
  create_table(:notes) do |t|
    t.string :title, null: false
    t.text :body
    t.integer :words
  end
  create_table(:tags) do |t|
    t.references :note
    t.string :name
  end
end
load File.join(Gem.loaded_specs["solid_queue"].full_gem_path, "lib/generators/solid_queue/install/templates/db/queue_schema.rb")
